"""Tell what the weight decay of a class means: one word, two different updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optim_hydra.signature import signature_of

__all__ = ["decay_meaning"]

# Arguments by which classes switch between the two. lion_pytorch means something else
# by decoupled_weight_decay: its decay is decoupled either way.
_SWITCHES = ("weight_decouple", "decouple", "decoupled_decay")
_TORCH_SWITCH = "decoupled_weight_decay"
_DECOUPLED = ("adamw", "lion", "muon", "sgdw", "adan", "adafactor", "schedulefree")
_COUPLED = ("torch.optim.", "bitsandbytes.optim.")


def decay_meaning(cls: type, arguments: Mapping[str, Any]) -> str:
    """Return `decoupled`, `L2`, or nothing where it is not known or there is none.

    Decoupled: weights shrink by lr * weight_decay each step (Loshchilov and Hutter,
    arXiv 1711.05101). L2: weight_decay * weight is added to the gradient, so that an
    adaptive class divides it by the size of the gradient.

    Example:
        >>> import torch
        >>> decay_meaning(torch.optim.AdamW, {}), decay_meaning(torch.optim.Adam, {})
        ('decoupled', 'L2')

    """
    taken = signature_of(cls).arguments
    if "weight_decay" not in taken:
        return ""
    is_torch = cls.__module__.startswith("torch.optim.")
    for switch in (*_SWITCHES, *[_TORCH_SWITCH] * is_torch):
        if switch in taken:
            value = arguments.get(switch, taken[switch].default)
            return "decoupled" if value else "L2"
    name = cls.__name__.lower().replace("_", "")
    if any(word in name for word in _DECOUPLED):
        return "decoupled"
    return "L2" if f"{cls.__module__}.".startswith(_COUPLED) else ""
