"""Convert what verl's optimizer groups have in common, and its FSDP group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optim_hydra.errors import Problems
from optim_hydra.renamed_keys import same_value
from optim_hydra.rewriting import EXTRA, SAME, Rewriting, rounded
from optim_hydra.schedule import steps_of
from optim_hydra.signature import Argument, signature_of
from optim_hydra.targets import Target, load_class

__all__ = ["convert_fsdp", "convert_verl", "convert_warmup", "own_arguments"]

_VERL_CLIP = 1.0
_PAIR = (0.9, 0.999)


def convert_verl(node: Rewriting) -> None:
    """Convert what all groups share: the clip that wins, and the warmup's two keys."""
    clip = node.get("clip_grad")
    is_default = same_value(clip, _VERL_CLIP) and not node.typed
    if node.get("grad_clip") is not None and is_default:
        node.goes("clip_grad")  # verl's default, which its older key replaces
    if node.get("_target_"):
        node.becomes("_target_", ("_target_", "optim_hydra.build"))
    convert_warmup(node)


def convert_warmup(node: Rewriting, *, up: bool = False) -> None:
    """Settle steps against ratio: positive steps win, else the ratio holds.

    Args:
        node: With our names for the two.
        up: Whether a share of steps is rounded up, as transformers does; else down.

    """
    steps, ratio = node.number("lr_warmup_steps"), node.number("lr_warmup_steps_ratio")
    total = node.number("total_training_steps") or -1
    if steps is not None and steps > 0:
        if ratio:
            node.becomes("lr_warmup_steps_ratio", ("lr_warmup_steps_ratio", 0.0))
        return
    if steps == 0.0 and not up:
        node.becomes("lr_warmup_steps", ("lr_warmup_steps", -1))  # verl takes the ratio
    if not ratio:
        return
    exact = ratio * total
    wanted = int(-(-exact // 1)) if up else int(exact)
    if total > 0 and wanted != steps_of(ratio, int(total)):
        new = ("lr_warmup_steps", wanted), ("lr_warmup_steps_ratio", 0.0)
        node.becomes("lr_warmup_steps_ratio", *new)
        node.goes("lr_warmup_steps")
    elif "lr_warmup_steps" in node and not (
        steps == -1 or node.is_unread("lr_warmup_steps")
    ):
        node.becomes("lr_warmup_steps", ("lr_warmup_steps", -1))


def convert_fsdp(node: Rewriting) -> None:
    """Convert the FSDP group, which has our names: values that mean other things."""
    convert_verl(node)
    # The older key is the one that holds, wherever both are set.
    schedule = node.get("warmup_style") or node.get("lr_scheduler_type")
    if node.whole and schedule in (None, "constant"):
        node.goes("min_lr_ratio", "num_cycles", "zero_indexed_step")
    elif schedule == "constant" and node.number("min_lr_ratio"):
        node.idles("min_lr_ratio", "min_lr_ratio", "the schedule constant")
    if node.get("zero_indexed_step") is False and "zero_indexed_step" not in (
        node.outcomes
    ):
        _shift(node, schedule)
    if node.get("lr_scheduler") == "wsd":
        _convert_wsd(node)
    for name in ("lr", "weight_decay", "betas"):
        _take_argument(node, name)
    if "optimizer" in node or node.whole:
        _convert_betas(node)


def _take_argument(node: Rewriting, name: str) -> None:
    """Make a field of an argument: of two values verl takes this one.

    Where only its place tells that the class was meant to have it, it stays, too.
    """
    path = f"{EXTRA}.{name}"
    if path not in node:
        return
    value = node.items[path]
    stays = name == "betas" and not (node.whole or "_target_" in node or _is_adam(node))
    if stays and name in node and _same_pair(value, node.items[name]):
        return
    node.becomes(path, *[(path, SAME)] * stays, (name, value))
    node.goes(name)


def _shift(node: Rewriting, schedule: Any) -> None:
    """Begin one step later in the same curve, as verl does (it shifts all of it)."""
    if schedule == "constant":
        why = "zero_indexed_step: false has no effect with verl's schedule constant:"
        node.asks("zero_indexed_step", f"{why} write true")
        return
    if schedule not in (None, "cosine"):
        return  # verl has no other, so this one is ours
    total = node.number("total_training_steps") or -1
    steps, ratio = node.number("lr_warmup_steps"), node.number("lr_warmup_steps_ratio")
    warmup = int(steps if steps and steps > 0 else (ratio or 0.0) * total)
    # In a file it may be ours already, which says less: only a warmup's first step.
    if total < 2 or warmup < 1 or not node.whole:  # noqa: PLR2004 - one step is left
        why = (
            "zero_indexed_step: false shifts verl's whole curve by one step, here only"
            " the warmup: say lr_warmup_steps and total_training_steps, both one less,"
            " and lr_warmup_init_ratio, one over the warmup steps"
        )
        node.asks("zero_indexed_step", why)
        return
    node.becomes(
        "zero_indexed_step",
        ("lr_warmup_steps", warmup - 1),
        ("lr_warmup_init_ratio", rounded(1.0 / warmup)),
        ("total_training_steps", int(total) - 1),
    )
    node.goes("lr_warmup_steps", "lr_warmup_steps_ratio", "total_training_steps")


def _convert_wsd(node: Rewriting) -> None:
    """Convert wsd of verl's older SFT trainer: a tenth of what follows decays."""
    ratio = node.number("warmup_steps_ratio") or node.number("lr_warmup_steps_ratio")
    if ratio is None and not node.whole:
        why = "wsd decays over 0.1 of the steps after the warmup, which is not said"
        why += " beside it: write lr_scheduler_type: wsd with lr_decay_steps_ratio"
        node.asks("lr_scheduler", f"{why} and lr_decay_style: cosine")
        return
    node.becomes(
        "lr_scheduler",
        ("lr_scheduler_type", "wsd"),
        ("lr_decay_style", "cosine"),
        ("lr_decay_steps_ratio", rounded(0.1 * (1.0 - (ratio or 0.0)))),
    )


def _convert_betas(node: Rewriting) -> None:
    """Settle the betas of a class that verl gives none: it goes by the class's name."""
    name = str(node.get("optimizer") or "AdamW")
    if _is_adam(node) or f"{EXTRA}.betas" in node:
        return
    impl = str(node.get("optimizer_impl") or "torch.optim")
    # Reading a file imports nothing that it names.
    own = _own_betas(impl, name) if node.whole or impl == "torch.optim" else None
    if own is not None:
        _settle_betas(node, name, own)
    elif not node.whole:  # else there is no such class, as who builds it will say
        why = f"verl gives no betas to {name}, so it had its own: write {EXTRA}.betas"
        if "betas" in node:
            node.asks("betas", f"{why} with those, or yours, and remove betas")
        else:
            node.asks("optimizer", f"{why} with those")


def _settle_betas(node: Rewriting, name: str, own: tuple[Any, ...]) -> None:
    """Write the class's own betas, () where it takes none, or ask."""
    betas = node.get("betas") if _numbers(node.get("betas")) else None
    is_default = betas is None or _same_pair(betas, _PAIR)
    if own == () and node.whole:
        node.goes("betas")
    elif own == () and not is_default:
        node.becomes("betas", ("betas", list(_PAIR)))  # which count as not set
    elif own == () or _same_pair(own, betas):
        return
    elif not is_default and not node.whole:
        why = f"verl gives no betas to {name}, so it had its own, {_text(own)}: write"
        why += f" these or, to have {_text(betas)}, {EXTRA}.betas"
        node.asks("betas", why)
    elif not is_default:
        return  # somebody set them for this run: here they reach the class
    elif betas is not None:
        node.becomes("betas", ("betas", list(own)))
    elif not _same_pair(own, _PAIR):
        node.becomes("optimizer", ("optimizer", name), ("betas", list(own)))


def _is_adam(node: Rewriting) -> bool:
    """Whether verl hands betas to the class, as it judges by the name."""
    name = str(node.get("optimizer") or "AdamW").lower()
    return "adam" in name or "ademamix" in name


def own_arguments(impl: str, name: str) -> Mapping[str, Argument]:
    """Return what the constructor of a class takes; nothing where there is no such."""
    cls = load_class(Target(impl, name), Problems(""))
    return signature_of(cls).arguments if cls is not None else {}


def _own_betas(impl: str, name: str) -> tuple[Any, ...] | None:
    """Return the default betas of a class: () where it takes none, None if unknown."""
    arguments = own_arguments(impl, name)
    if not arguments:
        return None
    argument = arguments.get("betas")
    if argument is None:
        return ()
    return tuple(argument.default) if not argument.is_required else None


def _same_pair(first: Any, second: Any) -> bool:
    return _numbers(first) is not None and _numbers(first) == _numbers(second)


def _numbers(values: Any) -> list[float] | None:
    """Return a pair as numbers; None where it is none, as its check will say."""
    try:
        return None if isinstance(values, str) else [float(value) for value in values]
    except (TypeError, ValueError):
        return None


def _text(values: Any) -> str:
    return str(_numbers(values))
