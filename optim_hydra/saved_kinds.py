"""Tell where saved values of torch's schedules are of other kinds than this run's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from optim_hydra.value_checks import shown

__all__ = ["kind_problem"]


def kind_problem(value: Any, own: Any, where: str) -> str | None:
    """Say what is of another kind; None where a saved value can take its own's place.

    Numbers may differ, and so may the length of a list of them, which has one for each
    group. Where this run has null there may be anything.
    """
    if own is None:
        return None
    kind = _kind(own)
    if kind == _kind(value) == "a mapping":
        return _in_mapping(value, own, where)
    if kind == _kind(value) == "a list":
        return _in_list(value, own, where)
    is_nan = value != value if isinstance(value, float) else False  # noqa: PLR0124
    if kind == _kind(value) and not is_nan:
        return None
    return f"{where} is {shown(value)}, where {kind} is due"


def _in_list(value: Any, own: Any, where: str) -> str | None:
    if own and not value:
        return f"{where} is empty"
    if own and isinstance(own[0], Mapping) and len(value) != len(own):
        return f"{where} has {len(value)} items, where {len(own)} are due"
    examples = own if len(own) == len(value) else own[:1] * len(value)
    items = enumerate(zip(value, examples, strict=False))
    found = (kind_problem(item, like, f"{where}[{i}]") for i, (item, like) in items)
    return next(filter(None, found), None)


def _in_mapping(
    value: Mapping[Any, Any], own: Mapping[Any, Any], where: str
) -> str | None:
    pairs = [(key, item, own.get(key)) for key, item in value.items()]
    if not all(isinstance(key, str) for key in own):
        pairs = [(key, item, 0) for key, item, _ in pairs]  # MultiStepLR's milestones
    elif value.keys() != own.keys():
        return f"{where} has other keys than this run's"
    found = (kind_problem(item, like, f"{where}.{key}") for key, item, like in pairs)
    return next(filter(None, found), None)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "a mapping"
    is_tensor = isinstance(value, Tensor)
    if is_tensor and value.numel() == 1 and not value.is_meta:
        value = value.item()
    return (
        "a number" if isinstance(value, (int, float)) else f"a {type(value).__name__}"
    )
