"""Random YAML texts with optimizer nodes among other things, as people write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

VALUES: dict[str, list[Any]] = {
    "warmup_steps_ratio": [0.0, 0.1, "0.25", None],
    "lr_warmup_steps_ratio": [0.0, 0.1],
    "warmup_style": ["cosine", "constant", None],
    "lr_scheduler": ["linear", "cosine", None],
    "lr_scheduler_type": ["constant", "cosine"],
    "grad_clip": [0.5, 1.0, None],
    "clip_grad": [0.5, None],
    "lr": [1e-3, "2e-4"],
    "weight_decay": [0.0, 0.1],
    "betas": [[0.9, 0.95]],
}
PLACES = ["optim", "actor", "critic", "trainer", "heads"]


def items() -> st.SearchStrategy[dict[str, Any]]:
    """Make the items of a mapping that may be an optimizer node."""
    pairs = {key: st.sampled_from(values) for key, values in VALUES.items()}
    return st.fixed_dictionaries({}, optional=pairs).filter(lambda d: len(d) <= 5)


def trees() -> st.SearchStrategy[dict[str, Any]]:
    """Make a config in which nodes stand at several depths, also in lists."""
    keys = st.sampled_from(PLACES)
    return st.dictionaries(
        keys,
        st.recursive(
            items(),
            lambda inner: (
                st.dictionaries(keys, inner, min_size=1, max_size=3)
                | st.lists(inner, min_size=1, max_size=2)
            ),
            max_leaves=4,
        ),
        min_size=1,
        max_size=3,
    )


def scalar(value: Any, draw: Any) -> str:
    if value is None:
        return draw(st.sampled_from(["null", "~"]))
    if isinstance(value, str):
        quote = draw(st.sampled_from(["", "'", '"']))
        return f"{quote}{value}{quote}"
    return str(value)


def flow(value: Any, draw: Any) -> str:
    blank = draw(st.sampled_from([" ", "  "]))
    if isinstance(value, dict):
        pairs = [f"{key}:{blank}{flow(held, draw)}" for key, held in value.items()]
        return "{" + f",{blank}".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, draw) for item in value) + "]"
    return scalar(value, draw)


def lines(value: Any, draw: Any, indent: int) -> list[str]:
    """Write a mapping or a list as a block, with comments and blank lines."""
    margin = " " * indent
    step = draw(st.sampled_from([2, 4]))
    result = []
    pairs = value.items() if isinstance(value, dict) else [("-", v) for v in value]
    for key, held in pairs:
        if draw(st.booleans()):
            result.append(draw(st.sampled_from(["", f"{margin}# of what follows"])))
        name = "-" if key == "-" else f"{key}:"
        is_block = isinstance(held, (dict, list)) and held and draw(st.booleans())
        if is_block and key == "-":
            first, *rest = lines(held, draw, indent + 2)
            while not first.strip() or first.strip().startswith("#"):
                result.append(first)
                first, *rest = rest
            result += [f"{margin}- {first.strip()}", *rest]
        elif is_block:
            result += [f"{margin}{name}", *lines(held, draw, indent + step)]
        else:
            comment = draw(st.sampled_from(["", "  # beside it", " "]))
            result.append(f"{margin}{name} {flow(held, draw)}{comment}")
    return result


@st.composite
def texts(draw: Any) -> str:
    """Make a YAML text of a tree, in some mixture of blocks and flows."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    end = draw(st.sampled_from([newline, "", f"{newline}# the end{newline}"]))
    return newline.join(lines(draw(trees()), draw, 0)) + end
