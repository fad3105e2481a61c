"""Find the optimizer inside what a trainer wraps around it."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

from optim_hydra.errors import WrongObjectError

__all__ = ["is_wrapper", "unwrapped"]

# Each keeps what it wraps as `optimizer`, and passes steps on as the trainer needs it.
# Told by name: none of the packages is needed here.
_WRAPPERS = {
    "accelerate.optimizer.AcceleratedOptimizer",
    "lightning.fabric.wrappers._FabricOptimizer",
    "lightning.pytorch.core.optimizer.LightningOptimizer",
    "lightning_fabric.wrappers._FabricOptimizer",
    "pytorch_lightning.core.optimizer.LightningOptimizer",
}


def is_wrapper(cls: type[Any]) -> bool:
    """Whether instances pass their steps on to an optimizer that they hold."""
    bases = (f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__)
    return any(base in _WRAPPERS for base in bases)


def unwrapped(given: Any, place: str = "the argument", hint: str = "") -> Optimizer:
    """Return an optimizer without the wrappers of Lightning, Fabric and accelerate.

    Args:
        given: What a user passes as an optimizer.
        place: Where, for the message.
        hint: What to write instead, for the message.

    Raises:
        WrongObjectError: It is no optimizer.

    Example:
        >>> import torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> unwrapped(optimizer) is optimizer
        True

    """
    found = given
    while is_wrapper(type(found)):
        found = found.optimizer
    if isinstance(found, Optimizer):
        return found
    advice = f": {hint}" if hint else ""
    msg = f"{place} is of type {type(given).__name__}, not an optimizer{advice}"
    raise WrongObjectError(msg)
