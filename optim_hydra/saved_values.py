"""Keep saved state to values that `torch.load(weights_only=True)` reads."""

from __future__ import annotations

import enum
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["plain_enum", "warn_of_objects"]

log = logging.getLogger(__name__)
_PLAIN = {int, float, complex, str, bool, type(None), bytes}
_PLAIN |= {torch.dtype, torch.device, torch.Size}
_CONTAINERS = (dict, OrderedDict, list, tuple, set)


def plain_enum(value: Any) -> Any:
    """Return the number or text that a member of an IntEnum or StrEnum equals."""
    is_plain = isinstance(value, enum.Enum) and isinstance(value, (int, str))
    return value.value if is_plain else value


def warn_of_objects(entries: Mapping[str, Any]) -> None:
    """Log the classes of objects that a file can be read with only where allowed."""
    strange: dict[type, str] = {}
    seen: set[int] = set()
    for entry, value in entries.items():
        if type(value) in _PLAIN or isinstance(value, Tensor) or id(value) in seen:
            continue
        seen.add(id(value))  # the parameters of a group share its values
        for cls in _strange_in(value, set()):
            strange.setdefault(cls, entry)
    if strange:
        names = ", ".join(sorted({cls.__qualname__ for cls in strange}))
        text = (
            "%s is kept in an object: torch.load(weights_only=True) reads the file only"
            " after torch.serialization.add_safe_globals([%s])"
        )
        log.warning(text, next(iter(strange.values())), names)


def _strange_in(value: Any, seen: set[int]) -> Iterator[type]:
    if type(value) in _PLAIN or isinstance(value, Tensor) or id(value) in seen:
        return
    seen.add(id(value))
    if type(value) in _CONTAINERS:
        items = value.values() if isinstance(value, dict) else value
        for item in items:
            yield from _strange_in(item, seen)
        return
    yield type(value)
    for item in vars(value).values() if hasattr(value, "__dict__") else ():
        yield from _strange_in(item, seen)
