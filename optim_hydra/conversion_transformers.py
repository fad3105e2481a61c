"""Convert the arguments of transformers' Trainer that are about the optimizer."""

from __future__ import annotations

import json
from typing import Any

from optim_hydra.conversion_megatron import decay_share
from optim_hydra.conversion_verl import convert_warmup
from optim_hydra.rewriting import EXTRA, Rewriting, Unread, rounded

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
    "warmup_stable_decay": "wsd",
}
_OURS = (*TRAINER_SCHEDULES.values(),)
_DECAYS = {"linear": "linear", "cosine": "cosine", "1-sqrt": "sqrt"}
_PAIR = (0.9, 0.999)
_KWARGS = "lr_scheduler_kwargs"


def convert_transformers(node: Rewriting) -> None:
    """Convert the Trainer's names; without `optimizer` it was its default, AdamW."""
    _convert_class(node)
    node.pair("adam_beta1", "adam_beta2", "betas", _PAIR)
    clip = node.number("max_grad_norm")
    if clip is not None:
        node.becomes(
            "max_grad_norm",
            ("clip_grad", node.items["max_grad_norm"] if clip else None),
        )
    elif "max_grad_norm" in node:
        node.becomes("max_grad_norm", ("clip_grad", node.items["max_grad_norm"]))
    _convert_schedule(node)
    _convert_warmup(node)


def _convert_class(node: Rewriting) -> None:
    name = node.get("optim")
    if name in TRAINER_CLASSES:
        impl, cls = TRAINER_CLASSES[name]
        new: list[tuple[str, Any]] = [("optimizer", cls)]
        if impl != "torch.optim":
            new.insert(0, ("optimizer_impl", impl))
        if name == "adamw_torch_fused":
            new.append(("implementation", "fused"))
        node.becomes("optim", *new)
    elif "optim" in node:
        shown = (
            name if name is not None else getattr(node.items["optim"], "text", "null")
        )
        why = f"no class for the Trainer's {shown}: write optimizer_impl and optimizer,"
        node.asks("optim", f"{why} as optim-hydra list has them")
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


def _read(text: str) -> Any:
    """Read a value as YAML would, numbers and true and false."""
    text = text.strip()
    known = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _convert_schedule(node: Rewriting) -> None:
    name = node.get("lr_scheduler_type")
    if name == "constant_with_warmup" or (
        name in TRAINER_SCHEDULES and TRAINER_SCHEDULES[name] != name
    ):
        node.becomes(
            "lr_scheduler_type", ("lr_scheduler_type", TRAINER_SCHEDULES[name])
        )
    elif name is not None and name not in _OURS:
        why = f"no schedule for the Trainer's {name}: write one of"
        node.asks("lr_scheduler_type", f"{why} constant, linear, cosine, wsd, your own")
    if _KWARGS in node:
        _convert_kwargs(node)


def _convert_kwargs(node: Rewriting) -> None:
    kwargs = node.get(_KWARGS)
    if isinstance(kwargs, str):
        try:
            kwargs = json.loads(kwargs)
        except ValueError:
            kwargs = None
    if not isinstance(kwargs, dict):
        node.asks(_KWARGS, "lr_scheduler_kwargs is no mapping here")
        return
    lr = node.items.get("learning_rate", node.items.get("lr"))
    inner = Rewriting({"lr": lr, **kwargs}, whole=False)
    total = node.items.get("max_steps", node.items.get("total_training_steps"))
    inner.items = {**inner.items, "total_training_steps": total}
    inner.becomes("min_lr_rate", ("min_lr_ratio", kwargs.get("min_lr_rate")))
    inner.becomes("num_cycles", ("num_cycles", kwargs.get("num_cycles")))
    if "min_lr" in kwargs:
        inner.share("min_lr", "min_lr_ratio")
    if "num_decay_steps" in kwargs:
        decay_share(inner, "num_decay_steps")
    if kwargs.get("decay_type") in _DECAYS:
        new = ("lr_decay_style", _DECAYS[kwargs["decay_type"]])
        inner.becomes("decay_type", new)
    if "min_lr_ratio" in kwargs:  # of warmup_stable_decay, which warms up from it
        ratio = rounded(float(kwargs["min_lr_ratio"]))
        inner.becomes(
            "min_lr_ratio", ("min_lr_ratio", ratio), ("lr_warmup_init_ratio", ratio)
        )
    if kwargs.get("warmup_type") == "linear":
        inner.goes("warmup_type")
    left = [key for key in kwargs if key not in inner.outcomes]
    whys = [done.undecided for done in inner.outcomes.values() if done.undecided]
    if left or whys:
        named = [f"{', '.join(left)} of lr_scheduler_kwargs: no equal"] if left else []
        node.asks(_KWARGS, "; ".join(named + whys))
        return
    node.becomes(
        _KWARGS, *(pair for done in inner.outcomes.values() for pair in done.new)
    )


def _convert_warmup(node: Rewriting) -> None:
    """Convert warmup_steps (a share where it is below 1) and warmup_ratio."""
    if node.get("lr_scheduler_type") == "constant":
        node.goes("warmup_steps", "warmup_ratio")  # of no effect
        return
    steps, ratio = node.number("warmup_steps"), node.items.get("warmup_ratio")
    if "warmup_ratio" in node:
        node.becomes("warmup_ratio", ("lr_warmup_steps_ratio", ratio))
    if steps is not None and 0.0 < steps < 1.0:
        node.becomes("warmup_steps", ("lr_warmup_steps_ratio", steps))
    elif steps == 0.0 and ("warmup_ratio" in node or node.whole):
        node.goes("warmup_steps")
    elif "warmup_steps" in node:
        node.becomes("warmup_steps", ("lr_warmup_steps", node.items["warmup_steps"]))
        if steps:
            node.goes("warmup_ratio")
    renamed = {"lr_warmup_steps": node.items.get("lr_warmup_steps")}
    if node.whole and not steps and ratio and not renamed["lr_warmup_steps"]:
        _round_up(node, ratio)


def _round_up(node: Rewriting, ratio: Any) -> None:
    total = node.items.get("max_steps", node.items.get("total_training_steps", -1))
    held = {"lr_warmup_steps_ratio": ratio, "total_training_steps": total}
    inner = Rewriting(held, whole=True)
    convert_warmup(inner, up=True)
    if "lr_warmup_steps_ratio" in inner.outcomes:
        node.becomes(
            "warmup_ratio",
            ("lr_warmup_steps", inner.outcomes["lr_warmup_steps_ratio"].new[0][1]),
        )
