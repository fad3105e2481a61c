"""Make empty state for `torch.distributed.checkpoint` to load into.

It asks for the state before it reads anything, and loads only what it was given. What
an optimizer would keep is learnt from a copy of it that takes one step on zero
gradients; the optimizer itself and its parameters are not touched.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

import torch
from torch.optim import Optimizer

from optim_hydra.state_slots import leaves, slots_of

__all__ = ["state_templates"]

log = logging.getLogger(__name__)


def state_templates(optimizer: Optimizer) -> dict[str, dict[str, Any]]:
    """Return name -> key -> a value of the right kind and shape, for every parameter.

    It takes the memory of the parameters and their state once more while it runs.
    There is none for a class whose step fails on zero gradients; the log names it.
    """
    found: dict[str, dict[str, Any]] = {}
    for prefix, leaf, _ in leaves(optimizer):
        shadow = _stepped(leaf)
        if shadow is None:
            continue
        for real, copied in zip(slots_of(leaf), slots_of(shadow), strict=True):
            found[f"{prefix}{real.name}"] = copied.state()
    return found


def _stepped(optimizer: Optimizer) -> Optimizer | None:
    shadow = copy.deepcopy(optimizer)
    for group in shadow.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    try:
        if callable(getattr(shadow, "train", None)):
            shadow.train()  # type: ignore[attr-defined]
        shadow.step(lambda: torch.zeros(()))  # type: ignore[arg-type, return-value]
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        text = (
            "%s has no state to load into, since its step fails on zero gradients (%s):"
            " torch.distributed.checkpoint restores nothing of it before its first step"
        )
        log.warning(text, type(optimizer).__name__, error)
        return None
    return shadow
