"""Tell what saved state is due to be, where its file does not say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.miniature import has_miniature, kept_in_miniature, small_shape
from optim_hydra.signature import signature_of
from optim_hydra.state_slots import Slot
from optim_hydra.state_templates import state_templates

__all__ = ["ONE_VECTOR", "StateShapes", "shape_of"]

# It keeps all parameters as one vector, in the state of the first.
ONE_VECTOR = "torch.optim.lbfgs"


class StateShapes:
    """What the state of an optimizer is like, from its class or from a copy's step.

    The copy is made for classes that torch and torchao do not have; it takes the memory
    of the parameters and their state while the shapes are read.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        """Look at nothing yet."""
        self._optimizer = optimizer
        self._small: dict[Any, dict[str, Any] | None] = {}

    def kept(
        self, slot: Slot, values: Mapping[str, Any], keys: AbstractSet[str]
    ) -> dict[str, Any] | None:
        """Return what a class of torch or torchao keeps, of `small_shape`.

        None where nothing is known.

        Args:
            slot: The parameter.
            values: Its saved settings; those that say what is kept are as they were.
            keys: What was saved.

        """
        cls: Any = type(slot.optimizer)
        if not has_miniature(cls):
            return None
        ndim, dtype = slot.parameter.ndim, slot.parameter.dtype
        now = (id(slot.group), ndim, dtype)
        if now not in self._small:
            own = _settings(slot, {})
            self._small[now] = kept_in_miniature(cls, ndim, dtype, own)
        found = self._small[now]
        if found is None or found.keys() == keys:
            return found
        then = _settings(slot, values)
        mark = (cls, ndim, dtype, repr(then))
        if mark not in self._small:
            self._small[mark] = kept_in_miniature(cls, ndim, dtype, then)
        return self._small[mark] or found

    def due(self, slot: Slot, key: str, value: Tensor, small: Any) -> list[int] | None:
        """Return the shape that a value should have had, None where it fits.

        Args:
            slot: The parameter.
            key: What it is.
            value: As it was saved.
            small: The same in a miniature, if there is one.

        """
        shape, found = list(slot.parameter.shape), list(value.shape)
        if isinstance(small, Tensor):
            due = _enlarged(small, shape)
            return due if due != found else None
        own = slot.state()
        if key in own:
            held = shape_of(own[key])
            return held if held is not None and held != found else None
        cls: Any = type(slot.optimizer)
        if has_miniature(cls) or self._is_one_vector(slot):
            return None
        like = shape_of(self.learnt(slot).get(key)) == shape
        return shape if like and found != shape else None

    def learnt(self, slot: Slot) -> dict[str, Any]:
        """Return what any other class keeps: now, or else what a copy's step made."""
        if self._is_one_vector(slot):
            return {}
        return slot.state() or self._learnt.get(slot.name, {})

    @cached_property
    def _learnt(self) -> dict[str, dict[str, Any]]:
        return state_templates(self._optimizer).state

    @staticmethod
    def _is_one_vector(slot: Slot) -> bool:
        return type(slot.optimizer).__module__ == ONE_VECTOR


def shape_of(value: Any) -> list[int] | None:
    """Return the shape of a tensor, None for anything else."""
    return list(value.shape) if isinstance(value, Tensor) else None


def _settings(slot: Slot, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a class was constructed with, or what was saved instead."""
    taken = signature_of(type(slot.optimizer)).arguments
    own = {key: value for key, value in slot.group.items() if key in taken}
    return own | {key: value for key, value in saved.items() if key in own}


def _enlarged(small: Tensor, shape: Sequence[int]) -> list[int]:
    """Return the shape of what has one in the miniature, for the real parameter."""
    lengths = dict(zip(small_shape(len(shape)), shape, strict=True))
    return [lengths.get(length, length) for length in small.shape]
