"""Check what was saved for one parameter: keys, kinds and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from optim_hydra.saved_state import SavedState
from optim_hydra.state_shapes import StateShapes, shape_of
from optim_hydra.state_slots import Slot
from optim_hydra.torch_classes import is_torch_class

__all__ = ["check_kept"]

_Kept = Mapping[str, Any]
_ORDER = " (the saved state has no names: it was matched by order)"


def check_kept(
    slot: Slot,
    saved: SavedState,
    small: _Kept | None,
    shapes: StateShapes,
    problems: list[str],
) -> None:
    """Note what of a parameter's saved state its class could not go on with.

    Args:
        slot: The parameter.
        saved: What was read.
        small: What a miniature keeps, see `StateShapes.kept`.
        shapes: What other classes keep.
        problems: Where to note it.

    """
    name, kept = slot.name, saved.state.get(slot.name, {})
    known = saved.identity.get(name)
    shape = list(slot.parameter.shape)
    if known is not None and known.shape != shape:
        was = tuple(known.shape)
        problems.append(f"{name} has the shape {tuple(shape)}, and the saved one {was}")
        return
    lost = (known.keys.keys() if known else set()) - kept.keys()
    if small is not None and kept:
        lost |= small.keys() - kept.keys()
    if lost:
        problems.append(f"the saved state of {name} lacks {', '.join(sorted(lost))}")
    examples = small
    if examples is None:
        examples = shapes.learnt(slot) if known is None and kept else {}
    for key, value in kept.items():
        if isinstance(value, Tensor):
            what = _kind_problem(key, value, examples.get(key), slot)
            if what is None and known is None:
                due = shapes.due(slot, key, value, (small or {}).get(key))
                what = _shape_problem(key, value, slot, due)
                what = what and what + _ORDER * saved.by_order
            elif known is not None:
                what = what or _shape_problem(key, value, slot, known.keys.get(key))
        else:
            is_due = known is not None and known.keys.get(key) is not None
            example = slot.parameter if is_due else examples.get(key)
            what = _type_problem(key, value, example, slot)
        if what is not None:
            problems.append(what)
            return


def _shape_problem(
    key: str, value: Tensor, slot: Slot, expected: list[int] | None
) -> str | None:
    if expected is None or expected == shape_of(value):
        return None
    was, due = tuple(value.shape), tuple(expected)
    return f"{key} of {slot.name} was saved with the shape {was}, where {due} is due"


def _type_problem(key: str, value: Any, example: Any, slot: Slot) -> str | None:
    """Say what no tensor is saved of, where the class keeps one, or a number."""
    counts = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_number = isinstance(example, (int, float)) and not isinstance(example, bool)
    if counts and key == "step":
        return None  # a number in torch before 1.12
    kind = type(value).__name__
    if isinstance(example, Tensor):
        return f"{key} of {slot.name} is of type {kind}, where a tensor is due"
    if is_number and not counts:
        return f"{key} of {slot.name} is of type {kind}, where a number is due"
    return None


def _kind_problem(key: str, value: Tensor, example: Any, slot: Slot) -> str | None:
    """Say where a tensor has no values, or those of another kind."""
    name = slot.name
    if value.is_meta and not slot.parameter.is_meta:
        what = f"{key} of {name} has no values, it is on the meta device:"
        return f"{what} load the file with map_location='cpu'"
    if isinstance(example, Tensor):
        if _is_alike(key, value, example, slot):
            return None
        due = f"where {_kind(example)} is due"
    else:
        is_strange = value.layout is not torch.strided or value.is_quantized
        is_complex = value.is_complex() and not slot.parameter.is_complex()
        if not is_strange and not is_complex:
            return None
        due = f"and the parameter is of {_kind(slot.parameter)}"
    return f"{key} of {name} was saved as {_kind(value)}, {due}"


def _is_alike(key: str, value: Tensor, example: Tensor, slot: Slot) -> bool:
    """Whether the class can go on with a tensor as it does with its own."""
    if type(value) is Tensor and value.dtype == example.dtype:
        return value.layout == example.layout
    if value.layout != example.layout or value.is_quantized != example.is_quantized:
        return False
    if is_torch_class(type(slot.optimizer)):
        is_packed = hasattr(value, "__tensor_flatten__") and not _is_sharded(value)
        if is_packed and type(value) is not type(example):
            return False
    elif torch.uint8 in (value.dtype, example.dtype):
        return True  # packed, if the parameter is large enough
    if key == "step" and not value.dtype.is_floating_point:
        return value.dtype != torch.bool and not value.is_complex()
    kinds = [
        (each.dtype.is_floating_point, each.is_complex(), each.dtype == torch.bool)
        for each in (value, example)
    ]
    return kinds[0] == kinds[1]


def _is_sharded(value: Tensor) -> bool:
    return hasattr(value, "device_mesh")


def _kind(value: Tensor) -> str:
    sparse = "sparse " if value.layout is not torch.strided else ""
    own = type(value)
    packed = f" in {own.__name__}" if hasattr(own, "__tensor_flatten__") else ""
    return f"{sparse}{value.dtype}{packed}"
