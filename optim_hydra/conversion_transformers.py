"""Convert the arguments of transformers' Trainer that are about the optimizer."""

from __future__ import annotations

import json
from typing import Any

from optim_hydra.conversion_megatron import decay_share
from optim_hydra.conversion_verl import convert_warmup
from optim_hydra.rewriting import EXTRA, SAME, Outcome, Rewriting, Unread, rounded
from optim_hydra.value_checks import shown

__all__ = ["TRAINER_CLASSES", "TRAINER_SCHEDULES", "convert_transformers"]

_BNB = "bitsandbytes.optim"
# The Trainer's name: module, class. The rest needs more than a class, or has no equal.
TRAINER_CLASSES: dict[str, tuple[str, str]] = {
    "adamw_torch": ("torch.optim", "AdamW"),
    "adamw_torch_fused": ("torch.optim", "AdamW"),
    "adamw_torch_8bit": ("torchao.optim", "AdamW8bit"),
    "adamw_torch_4bit": ("torchao.optim", "AdamW4bit"),
    "adamw_8bit": (_BNB, "AdamW8bit"),
    "adamw_bnb_8bit": (_BNB, "AdamW8bit"),
    "paged_adamw_32bit": (_BNB, "PagedAdamW"),
    "paged_adamw_8bit": (_BNB, "PagedAdamW8bit"),
    "lion_32bit": (_BNB, "Lion"),
    "lion_8bit": (_BNB, "Lion8bit"),
    "paged_lion_32bit": (_BNB, "PagedLion"),
    "paged_lion_8bit": (_BNB, "PagedLion8bit"),
    "sgd": ("torch.optim", "SGD"),
    "adagrad": ("torch.optim", "Adagrad"),
    "rmsprop": ("torch.optim", "RMSprop"),
    "rmsprop_bnb": (_BNB, "RMSprop"),
    "rmsprop_bnb_32bit": (_BNB, "RMSprop32bit"),
    "rmsprop_bnb_8bit": (_BNB, "RMSprop8bit"),
}
TRAINER_SCHEDULES = {
    "constant": "constant",
    "constant_with_warmup": "constant",
    "linear": "linear",
    "cosine": "cosine",
    "cosine_with_min_lr": "cosine",
    "cosine_with_restarts": "cosine_with_restarts",
    "inverse_sqrt": "inverse_sqrt",
    "polynomial": "polynomial",
    "warmup_stable_decay": "wsd",
}
_OURS = (*TRAINER_SCHEDULES.values(),)
_DECAYS = {"linear": "linear", "cosine": "cosine", "1-sqrt": "sqrt"}
_PAIR = (0.9, 0.999)
_KWARGS = "lr_scheduler_kwargs"
_WSD = "warmup_stable_decay"
_POLYNOMIAL_END = 1e-7  # the Trainer's own lr_end


def convert_transformers(node: Rewriting) -> None:
    """Convert the Trainer's names; without `optimizer` it was its default, AdamW."""
    _convert_class(node)
    node.pair("adam_beta1", "adam_beta2", "betas", _PAIR)
    is_off = node.number("max_grad_norm") == 0.0
    node.becomes("max_grad_norm", ("clip_grad", None if is_off else SAME))
    _convert_schedule(node)
    _convert_warmup(node)


def _convert_class(node: Rewriting) -> None:
    name = node.text("optim")
    if name in TRAINER_CLASSES:
        impl, cls = TRAINER_CLASSES[name]
        new: list[tuple[str, Any]] = [("optimizer", cls)]
        if impl != "torch.optim":
            new.insert(0, ("optimizer_impl", impl))
        if name == "adamw_torch_fused":
            new.append(("implementation", "fused"))
        node.becomes("optim", *new)
    elif "optim" in node:
        name = name or _shown(node, "optim")
        why = f"no class for the Trainer's {name}: write optimizer_impl and optimizer"
        node.asks("optim", f"{why}, as optim-hydra list has them")
    if "optim_args" in node:
        _convert_arguments(node, str(name or ""))


def _convert_arguments(node: Rewriting, name: str) -> None:
    held = node.items["optim_args"]
    text = held.text.strip("'\"") if isinstance(held, Unread) else held
    if text is None:
        node.goes("optim_args")
        return
    parts = [part.partition("=") for part in str(text).split(",") if part.strip()]
    if "$" in str(text) or not all(equals for _, equals, _ in parts):
        why = f"optim_args is no list of key=value: write {EXTRA}"
    elif not name and not node.whole:
        why = f"it goes with optim, which is not said beside it: write {EXTRA}"
    elif name in ("", "adamw_torch", "adamw_torch_fused"):
        why = f"the Trainer ignores optim_args with {name or 'its default'}: remove it,"
        why += f" or write {EXTRA}"
    elif name not in TRAINER_CLASSES:
        why = f"it goes with optim: write {EXTRA}"
    else:
        pairs = [(f"{EXTRA}.{key.strip()}", _read(value)) for key, _, value in parts]
        node.becomes("optim_args", *pairs)
        return
    for key in ("optim", "optim_args"):  # one says nothing without the other
        node.asks(key, why)


def _shown(node: Rewriting, key: str) -> str:
    value = node.items[key]
    return value.text if isinstance(value, Unread) else shown(value)


def _read(text: str) -> Any:
    """Read a value as YAML would, numbers and true and false."""
    known = {"true": True, "false": False, "none": None, "null": None}
    if (text := text.strip()).lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _convert_schedule(node: Rewriting) -> None:
    name = node.text("lr_scheduler_type")
    if name == _WSD and _KWARGS not in node:
        why = f"{_WSD} has num_decay_steps in {_KWARGS}, which is not said beside it:"
        why += " write lr_scheduler_type: wsd, lr_decay_steps_ratio and lr_decay_style"
        node.asks("lr_scheduler_type", why)
    elif name in TRAINER_SCHEDULES:
        _name_schedule(node, name)
    elif "lr_scheduler_type" in node and name not in _OURS:
        name = name or _shown(node, "lr_scheduler_type")
        why = f"no schedule for the Trainer's {name}: write one of"
        node.asks("lr_scheduler_type", f"{why} {', '.join(dict.fromkeys(_OURS))}")
    if _KWARGS in node:
        _convert_kwargs(node)


def _name_schedule(node: Rewriting, name: str) -> None:
    """Name our schedule, with what the Trainer's own has where nobody says it."""
    kwargs = _read_kwargs(node) or {}
    added: list[tuple[str, Any]] = []
    if name == "cosine_with_restarts" and "num_cycles" not in kwargs:
        added = [("num_cycles", 1)]
    if name == "polynomial" and "lr_end" not in kwargs:
        lr = node.number("learning_rate") or node.number("lr")
        if not lr:
            why = "polynomial ends at the rate 1e-7, and lr is not said beside it:"
            why += (
                " write lr_scheduler_type: polynomial and min_lr_ratio, a share of lr"
            )
            node.asks("lr_scheduler_type", why)
            return
        added = [("min_lr_ratio", rounded(_POLYNOMIAL_END / lr))]
    ours = TRAINER_SCHEDULES[name]
    node.becomes("lr_scheduler_type", ("lr_scheduler_type", ours), *added)


def _read_kwargs(node: Rewriting) -> Any:
    kwargs = node.get(_KWARGS)
    if not isinstance(kwargs, str):
        return kwargs
    try:
        return json.loads(kwargs)
    except ValueError:
        return None


def _convert_kwargs(node: Rewriting) -> None:
    kwargs = _read_kwargs(node)
    is_wsd = node.get("lr_scheduler_type") == _WSD
    why = "lr_scheduler_kwargs is no mapping here"
    if isinstance(kwargs, dict):
        done = _settled_kwargs(node, kwargs, is_wsd=is_wsd)
        left = [key for key in kwargs if key not in done]
        whys = [f"{', '.join(left)} of lr_scheduler_kwargs: no equal"] if left else []
        whys += [each.undecided for each in done.values() if each.undecided]
        if not whys:
            node.becomes(
                _KWARGS, *(pair for each in done.values() for pair in each.new)
            )
            return
        why = "; ".join(whys)
    node.asks(_KWARGS, why)
    if is_wsd:  # one says nothing without the other
        node.asks("lr_scheduler_type", why)


def _settled_kwargs(
    node: Rewriting, kwargs: dict[str, Any], *, is_wsd: bool
) -> dict[str, Outcome]:
    """Say what becomes of each of the arguments of a schedule."""
    lr = node.items.get("learning_rate", node.items.get("lr"))
    total = node.items.get("max_steps", node.items.get("total_training_steps"))
    beside = {"lr": lr, "total_training_steps": total}
    inner = Rewriting({**beside, **kwargs}, whole=False)
    inner.becomes("min_lr_rate", ("min_lr_ratio", kwargs.get("min_lr_rate")))
    inner.becomes("num_cycles", ("num_cycles", kwargs.get("num_cycles")))
    inner.becomes("power", ("lr_decay_power", kwargs.get("power")))
    if "lr_end" in kwargs:
        inner.share("lr_end", "min_lr_ratio")
    if "min_lr" in kwargs:
        inner.share("min_lr", "min_lr_ratio")
    if "num_decay_steps" in kwargs:
        decay_share(inner, "num_decay_steps")
    style = str(kwargs.get("decay_type", "cosine" if is_wsd else None))
    if style in _DECAYS:
        inner.outcomes["decay_type"] = Outcome((("lr_decay_style", _DECAYS[style]),))
    ratio = inner.number("min_lr_ratio")
    if ratio is not None:  # of warmup_stable_decay, which warms up from it
        inner.becomes(
            "min_lr_ratio", ("min_lr_ratio", ratio), ("lr_warmup_init_ratio", ratio)
        )
    if kwargs.get("warmup_type") == "linear":
        inner.goes("warmup_type")
    return inner.outcomes


def _convert_warmup(node: Rewriting) -> None:
    """Convert warmup_steps (a share where it is below 1) and warmup_ratio."""
    if node.get("lr_scheduler_type") == "constant":
        node.goes("warmup_steps", "warmup_ratio")  # of no effect
        return
    steps, ratio = node.number("warmup_steps"), node.number("warmup_ratio")
    is_share = steps is not None and 0.0 < steps < 1.0
    node.becomes("warmup_ratio", ("lr_warmup_steps_ratio", SAME))
    name = "lr_warmup_steps_ratio" if is_share else "lr_warmup_steps"
    node.becomes("warmup_steps", (name, SAME))
    if is_share or (steps or 0.0) >= 1.0:
        node.goes("warmup_ratio")
    elif steps == 0.0 and (ratio or node.whole):
        node.goes("warmup_steps")
    if is_share:
        _round_up(node, "warmup_steps")
    elif not steps:
        _round_up(node, "warmup_ratio")


def _round_up(node: Rewriting, key: str) -> None:
    total = node.items.get("max_steps", node.items.get("total_training_steps", -1))
    ratio = node.items.get(key)
    held = {"lr_warmup_steps_ratio": ratio, "total_training_steps": total}
    inner = Rewriting(held, whole=True)
    convert_warmup(inner, up=True)
    done = inner.outcomes.get("lr_warmup_steps_ratio")
    if done is not None:
        node.becomes(key, done.new[0])
