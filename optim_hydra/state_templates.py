"""Make empty state for `torch.distributed.checkpoint` to load into.

It asks for the state before it reads anything, and loads only what it was given. What
an optimizer would keep is learnt from a copy of it that takes one step on zero
gradients; the optimizer itself and its parameters are not touched.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.optim import Optimizer

from optim_hydra.state_slots import leaves, slots_of

__all__ = ["state_templates"]


def state_templates(optimizer: Optimizer) -> dict[str, dict[str, Any]]:
    """Return name -> key -> a value of the right kind and shape, for every parameter.

    It takes the memory of the parameters and their state once more while it runs.
    Nothing is returned for a class whose step fails on zero gradients.
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
    except Exception:  # noqa: BLE001 - whatever the class raises, it has no template
        return None
    return shadow
