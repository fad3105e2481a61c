"""Convert nodes of Megatron-LM, Megatron-Bridge, and verl's Megatron group."""

from __future__ import annotations

from typing import Any

from optim_hydra.conversion_verl import convert_verl, own_arguments
from optim_hydra.rewriting import EXTRA, Rewriting, rounded
from optim_hydra.schedule import SCHEDULES

__all__ = [
    "MEGATRON_DECAYS",
    "MEGATRON_STYLES",
    "convert_megatron",
    "convert_verl_megatron",
    "decay_share",
]

_CLASSES = {"adam": "AdamW", "sgd": "SGD"}
MEGATRON_STYLES = {"constant": "constant", "linear": "linear", "cosine": "cosine"}
MEGATRON_DECAYS = {
    "exponential": "exponential",
    "linear": "linear",
    "cosine": "cosine",
    "minus_sqrt": "sqrt",
}
_PAIR = (0.9, 0.999)
_MOMENTUM = 0.9
_DECAY = ("lr_wsd_decay_style", "lr_wsd_decay_steps", "lr_wsd_decay_iters")
_NO_LENGTH = ("total_training_steps", -1)
_MUON = (
    "its Muon is scaled in another way than torch's: choose the group muon, or write"
    " param_groups with the role hidden for it"
)


def convert_megatron(node: Rewriting) -> None:
    """Convert a node with the names of Megatron's own config and flags."""
    _convert_class(node)
    for prefix in (f"{EXTRA}.", ""):
        node.pair(f"{prefix}adam_beta1", f"{prefix}adam_beta2", "betas", _PAIR)
    for key in list(node.items):
        name = key.removeprefix(f"{EXTRA}.")
        if name == "adam_eps":
            node.becomes(key, ("eps", node.items[key]))
        elif name == "sgd_momentum":
            _convert_momentum(node, key)
        elif key.startswith(f"{EXTRA}.") and not name.startswith("adam_beta"):
            _check_argument(node, key, name)
    if node.number("clip_grad") == 0.0:
        node.becomes("clip_grad", ("clip_grad", None))  # 0 switches Megatron's off
    _convert_schedule(node)
    _convert_length(node)
    _convert_policy(node)


def convert_verl_megatron(node: Rewriting) -> None:
    """Convert verl's Megatron group, which hands no betas on."""
    betas = node.get("betas")
    if any("adam_beta" in key for key in node.items):
        node.goes("betas")  # those of override_optimizer_config are the ones that hold
    elif isinstance(betas, (list, tuple)) and list(betas) != list(_PAIR):
        why = "verl gives Megatron no betas, so it had [0.9, 0.999]: write these or, to"
        why += f" have {list(betas)}, adam_beta1 and adam_beta2 in {EXTRA}"
        node.asks("betas", why)
    convert_verl(node)
    convert_megatron(node)


def _check_argument(node: Rewriting, key: str, name: str) -> None:
    """Ask about what is handed to Megatron, unless the class here takes it."""
    cls = _CLASSES.get(str(node.get("optimizer") or "").lower(), "AdamW")
    if name not in own_arguments("torch.optim", cls):
        why = f"{name} is an argument of Megatron's optimizer config: remove it, or"
        node.asks(key, f"{why} write an argument of {cls}")


def _convert_policy(node: Rewriting) -> None:
    """Convert the two switches that say whose schedule holds after a resume."""
    policies = {
        "use_checkpoint_opt_param_scheduler": "checkpoint",
        "override_opt_param_scheduler": "config",
    }
    is_on = any(node.get(key) is True for key in policies)
    for key, policy in policies.items():
        if node.get(key) is True:
            node.becomes(key, ("on_resume", policy))
        elif node.get(key) is False and (is_on or node.whole):
            node.goes(key)
        elif node.get(key) is False:
            node.becomes(key, ("on_resume", "config"))


def _convert_class(node: Rewriting) -> None:
    if "optimizer_impl" in node:
        return  # somebody decided for a class of ours
    name = str(node.get("optimizer") or "").lower()
    muon = [key for key in node.items if key.startswith("muon_")]
    if name == "muon":
        for key in ("optimizer", *muon):
            node.asks(key, _MUON)
        return
    if name:
        node.goes(*muon)  # of no effect
    elif muon:
        for key in muon:
            node.asks(key, f"{key} has an effect with optimizer: muon alone; {_MUON}")
    if name in _CLASSES and node.get("optimizer") != "SGD":
        new: tuple[tuple[str, Any], ...] = (("optimizer", _CLASSES[name]),)
        has_momentum = any("momentum" in key for key in node.items if key not in muon)
        if name == "sgd" and not has_momentum:
            new = (*new, (f"{EXTRA}.momentum", _MOMENTUM))
        node.becomes("optimizer", *new)
    elif name not in ("", "adamw", "sgd"):
        why = f"no class for Megatron's {name}: write optimizer and optimizer_impl"
        node.asks("optimizer", why)


def _convert_momentum(node: Rewriting, key: str) -> None:
    name = str(node.get("optimizer") or "").lower()
    if name == "sgd":
        node.becomes(key, (f"{EXTRA}.momentum", node.items[key]))
    elif name:
        node.goes(key)
    else:
        node.asks(key, f"{key} has an effect with optimizer: sgd alone")


def _convert_schedule(node: Rewriting) -> None:
    if "lr_scheduler_type" in node:
        return  # ours, where lr_decay_style is the decay part of wsd
    style = str(node.get("lr_decay_style") or "")
    if style in MEGATRON_STYLES:
        node.becomes("lr_decay_style", ("lr_scheduler_type", style))
        _drop_decay(node, style)
        if style == "constant":
            node.idles("min_lr", "min_lr_ratio", "the schedule constant")
    elif style.lower() == "wsd":
        node.becomes("lr_decay_style", ("lr_scheduler_type", "wsd"))
        _convert_decay(node)
    elif "lr_decay_style" in node:
        shown = style or getattr(node.items["lr_decay_style"], "text", "null")
        why = f"no schedule for Megatron's {shown}: write lr_scheduler_type"
        if style.replace("-", "_") == "inverse_square_root":
            why += ": inverse_sqrt, the same curve after a warmup"
        else:
            why += f", one of {', '.join(SCHEDULES)} or your own"
        node.asks("lr_decay_style", why)
        if style:
            _drop_decay(node, style)
    else:
        why = "it has an effect with lr_decay_style: WSD alone, which is not said here"
        for key in _DECAY:
            node.asks(key, why)


def _drop_decay(node: Rewriting, style: str) -> None:
    """Leave out what WSD alone reads, where it says no more than Megatron's default."""
    for key in _DECAY:
        if node.whole or node.get(key) in (None, "exponential"):
            node.goes(key)
        else:
            why = f"{key} has no effect with lr_decay_style: {style}: remove it"
            node.asks(key, why)


def _convert_decay(node: Rewriting) -> None:
    style = str(node.get("lr_wsd_decay_style") or "exponential")
    if style not in MEGATRON_DECAYS:
        why = f"no decay for {style}: write lr_decay_style, one of"
        node.asks("lr_wsd_decay_style", f"{why} linear, cosine, sqrt, exponential")
    elif "lr_wsd_decay_style" in node:
        new = ("lr_decay_style", MEGATRON_DECAYS[style])
        node.becomes("lr_wsd_decay_style", new)
    else:
        new = ("lr_decay_style", "exponential")
        node.becomes("lr_decay_style", ("lr_scheduler_type", "wsd"), new)
    for key in ("lr_wsd_decay_steps", "lr_wsd_decay_iters"):
        if key in node:
            decay_share(node, key)
    if node.whole and not {"lr_wsd_decay_steps", "lr_wsd_decay_iters"} & set(
        node.items
    ):
        node.asks("lr_decay_style", "WSD without lr_wsd_decay_steps: say them")


def decay_share(node: Rewriting, key: str) -> None:
    """Turn a number of decay steps into a share of all steps."""
    lengths = ("lr_decay_steps", "lr_decay_iters", "total_training_steps", "max_steps")
    known = [number for k in lengths if (number := node.number(k)) and number > 0]
    steps = node.number(key)
    if steps is None or not known:
        why = f"{key} is a number of steps: write lr_decay_steps_ratio, a share of"
        node.asks(key, f"{why} total_training_steps, which is not said beside it")
    else:
        node.becomes(key, ("lr_decay_steps_ratio", rounded(steps / known[0])))


def _convert_length(node: Rewriting) -> None:
    for key in ("lr_decay_steps", "lr_decay_iters"):
        steps = node.number(key)
        ratio = node.number("lr_warmup_steps_ratio")
        total = node.number("total_training_steps")
        if key in node and node.items[key] is None:
            rest = () if "total_training_steps" in node else (_NO_LENGTH,)
            node.becomes(key, *rest)
        elif steps is None:
            node.asks(key, f"{key} is not known here: write total_training_steps")
        elif total in (None, -1.0, steps) or not ratio:
            node.becomes(key, ("total_training_steps", int(steps)))
            node.goes("total_training_steps")
        else:
            why = f"the decay takes {int(steps)} steps and lr_warmup_steps_ratio is of"
            why += " another number: write total_training_steps and lr_warmup_steps"
            node.asks(key, why)
