"""Tell which shape saved state is due to have, where its file does not say it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.state_slots import Slot
from optim_hydra.state_templates import state_templates

__all__ = ["ONE_VECTOR", "StateShapes", "shape_of"]

# What they keep has the shape of the parameter, or that of sums over its dimensions.
_KNOWN = ("torch.optim.", "torchao.")
# It keeps all parameters as one vector, in the state of the first.
ONE_VECTOR = "torch.optim.lbfgs"


class StateShapes:
    """Shapes that the state of an optimizer has, from its class or from a copy's step.

    The copy is made for classes that torch and torchao do not have; it takes the memory
    of the parameters and their state while the shapes are read.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        """Look at nothing yet."""
        self._optimizer = optimizer

    def due(self, slot: Slot, key: str, found: Sequence[int]) -> list[int] | None:
        """Return the shape that a value should have had, None where it fits."""
        own = slot.state()
        if key in own:
            held = shape_of(own[key])
            return held if held is not None and held != list(found) else None
        cls = type(slot.optimizer)
        shape = list(slot.parameter.shape)
        if cls.__module__ == ONE_VECTOR:
            return None
        if cls.__module__.startswith(_KNOWN):
            return None if _fits_into(found, shape) else shape
        like = shape_of(self._learnt.get(slot.name, {}).get(key)) == shape
        return shape if like and list(found) != shape else None

    @cached_property
    def _learnt(self) -> dict[str, dict[str, Any]]:
        return state_templates(self._optimizer).state


def shape_of(value: Any) -> list[int] | None:
    """Return the shape of a tensor, None for anything else."""
    return list(value.shape) if isinstance(value, Tensor) else None


def _fits_into(found: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether it is broadcast to the shape; two shapes never are to one another."""
    pairs = zip(reversed(found), reversed(shape), strict=False)
    return len(found) <= len(shape) and all(own in (1, due) for own, due in pairs)
