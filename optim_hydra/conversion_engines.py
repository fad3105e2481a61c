"""Convert nodes of torchtitan, VeOmni and NeMo Automodel, also as verl's groups."""

from __future__ import annotations

from typing import Any

from optim_hydra.conversion_verl import convert_verl
from optim_hydra.rewriting import EXTRA, SAME, Rewriting, rounded
from optim_hydra.schedule import SCHEDULES

__all__ = [
    "TITAN_BF16",
    "convert_automodel",
    "convert_torchtitan",
    "convert_veomni",
    "convert_verl_torchtitan",
    "convert_verl_veomni",
]

TITAN_BF16 = "fused_opt_states_bf16"
_PAIR = (0.9, 0.999)
_TITAN_PAIR = (0.9, 0.95)
_ALL = f"{', '.join(SCHEDULES)} or your own"
_PLAIN = ("constant", "linear", "cosine")
_WARMUP = ("warmup_steps", "lr_warmup_steps", "lr_warmup_steps_ratio")
_LENGTH = ("total_steps", "total_training_steps")
_TITAN = (
    "decay_type",
    "warmup_steps",
    "min_lr_factor",
    "decay_ratio",
    "total_steps",
    "_target_",
)


def convert_torchtitan(node: Rewriting) -> None:
    """Convert torchtitan's optimizer and schedule; its first step has a rate."""
    node.pair("beta1", "beta2", "betas", _TITAN_PAIR)
    if node.get("implementation") == TITAN_BF16:
        why = "no equal for moments in bfloat16: write fused, or another class"
        node.asks("implementation", why)
    if "total_steps" in node:
        steps = node.items["total_steps"]
        length = () if steps is None else (("total_training_steps", steps),)
        node.becomes("total_steps", *length)
    _convert_decay(node)
    _warm_from_the_first_step(node)


def _warm_from_the_first_step(node: Rewriting) -> None:
    """Add zero_indexed_step: false beside the first item that is converted."""
    if "zero_indexed_step" in node:
        return
    for key in _TITAN:
        done = node.outcomes.get(key)
        if done is not None and done.new:
            node.becomes(key, *done.new, ("zero_indexed_step", False))
            return


def convert_verl_torchtitan(node: Rewriting) -> None:
    """Convert verl's torchtitan group."""
    convert_verl(node)
    convert_torchtitan(node)


def _convert_decay(node: Rewriting) -> None:
    kind, ratio = node.get("decay_type"), node.number("decay_ratio")
    if node.is_unread("decay_ratio") or node.is_unread("decay_type"):
        for key in ("decay_type", "decay_ratio"):
            node.asks(key, f"{key} decides over lr_scheduler_type: write that instead")
        return
    if kind not in (None, "linear", "cosine", "sqrt"):
        node.asks("decay_type", f"no decay for {kind}: write lr_scheduler_type")
        return
    new: tuple[tuple[str, Any], ...]
    kind = kind or "linear"
    if "decay_ratio" in node and ratio == 0.0:
        new = (("lr_scheduler_type", "constant"),)
        node.idles("min_lr_factor", "min_lr_ratio", "decay_ratio: 0.0")
    elif ratio is not None or kind == "sqrt":
        ratio = _all_after_warmup(node) if ratio is None else ratio
        if ratio is None:
            why = "sqrt decays from the warmup on, whose share is not said beside it:"
            why += " write lr_scheduler_type: wsd, lr_decay_style: sqrt and"
            node.asks("decay_type", f"{why} lr_decay_steps_ratio")
            return
        share = ("lr_decay_steps_ratio", ratio)
        new = (("lr_scheduler_type", "wsd"), ("lr_decay_style", kind), share)
    else:
        new = (("lr_scheduler_type", kind),)
    if "decay_type" in node:
        node.becomes("decay_type", *new)
        node.goes("decay_ratio")
    elif ratio is not None:
        node.becomes("decay_ratio", *new)
    else:
        node.goes("decay_ratio")


def _all_after_warmup(node: Rewriting) -> float | None:
    """Return the share of steps after the warmup, None where it is not known."""
    held = {key: node.number(key) for key in (*_WARMUP, *_LENGTH) if key in node}
    steps = max((number for k in _WARMUP[:2] if (number := held.get(k))), default=0.0)
    total = next((number for k in _LENGTH if (number := held.get(k))), -1.0)
    if any(node.is_unread(key) for key in held) or not (node.whole or held):
        return None
    if steps > 0.0:
        return rounded((total - steps) / total) if total > 0.0 else None
    return rounded(1.0 - (held.get("lr_warmup_steps_ratio") or 0.0))


def convert_veomni(node: Rewriting) -> None:
    """Convert VeOmni's names; its rates are absolute."""
    for key in ("optimizer", "optimizer_type"):
        name = node.get(key)
        if str(name).lower() == "adamw" and (key, name) != ("optimizer", "AdamW"):
            node.becomes(key, ("optimizer", "AdamW"))
        elif name is not None and name != "AdamW":
            why = f"no class for VeOmni's {name}: write optimizer and optimizer_impl"
            node.asks(key, why)
    if "lr_scheduler_type" not in node and node.get("lr_decay_style") in _PLAIN:
        node.becomes("lr_decay_style", ("lr_scheduler_type", SAME))
    elif "lr_scheduler_type" not in node:
        why = f"no schedule for it: write lr_scheduler_type, one of {_ALL}"
        node.asks("lr_decay_style", why)
    schedule = node.get("lr_scheduler_type") or node.get("lr_decay_style")
    if schedule == "constant" or (node.whole and schedule is None):
        node.idles("lr_min", "min_lr_ratio", "the schedule constant")
    if node.number("lr_decay_ratio") not in (None, 1.0):
        why = "it ends the decay before the run ends: write total_training_steps, the"
        node.asks("lr_decay_ratio", f"{why} step at which it ends")


def convert_verl_veomni(node: Rewriting) -> None:
    """Convert verl's VeOmni group, which reads two of its keys nowhere."""
    convert_verl(node)
    steps = node.number("lr_warmup_steps")
    if steps is not None and steps > 0:
        node.outcomes.pop("lr_warmup_steps_ratio", None)
        why = "verl gives VeOmni no lr_warmup_steps, so the ratio held: write -1, and"
        node.asks("lr_warmup_steps", f"{why} the share in lr_warmup_steps_ratio")
    for key in node.items:
        if key.startswith(f"{EXTRA}."):
            why = f"verl gives VeOmni no {EXTRA}, so it had no effect: remove it, and"
            node.asks(key, f"{why} add what you want to have once this is converted")
    convert_veomni(node)


def convert_automodel(node: Rewriting) -> None:
    """Convert verl's group for NeMo Automodel, which has most of our names."""
    convert_verl(node)
    for key, default in (("num_cycles", 0.5), ("zero_indexed_step", True)):
        if node.whole:
            node.goes(key)  # read by nobody
        elif node.get(key) != default:
            node.becomes(key, (key, default))
    schedule = node.get("lr_scheduler_type")
    if schedule == "constant":
        node.idles("min_lr_ratio", "min_lr_ratio", "the schedule constant")
    elif schedule == "inverse-square-root":
        why = "no schedule of this name: write inverse_sqrt, the same curve after a"
        node.asks("lr_scheduler_type", f"{why} warmup")
    elif schedule not in (None, *_PLAIN):
        why = f"no schedule for Automodel's {schedule}: write one of {_ALL}"
        node.asks("lr_scheduler_type", why)
    if "init_lr_ratio" in node and node.items["init_lr_ratio"] is None:
        node.becomes("init_lr_ratio", ("lr_warmup_init_ratio", 0.0))
    for key in ("master_weights", "store_param_remainders"):
        if node.get(key):
            node.becomes(key, (f"{EXTRA}.{key}", node.items[key]))
