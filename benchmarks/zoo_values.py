"""Find out whether a value that was set stands anywhere in the built optimizer."""

from __future__ import annotations

import functools
import inspect
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from optim_hydra.signature import Argument

__all__ = ["candidates", "snapshot"]

_DEPTH = 7
_FEW = 4
# The base class's own: tables of hooks and the like.
_SKIPPED = re.compile(r"_hooks$|^_zero_grad_profile_name$|^_patched_step|^__")


def candidates(argument: Argument) -> list[Any]:
    """Return a few values for an argument, none of them its default.

    They are of the default's kind and rarely met, so that one that is found again is
    the one that was set.
    """
    value = argument.default
    words = set(re.findall(r"\w+", argument.annotation))
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int) and "float" not in words:
        return [value + 1, value + 3]
    if isinstance(value, (int, float)):
        near = [value * 0.93, value * 1.07] if math.isfinite(value) else []
        return [0.0371, *near] if value == 0 else [*near, 0.0371]
    if isinstance(value, str):
        found = re.findall(r"'([^']+)'", argument.annotation)
        return [word for word in found if word != value] or [f"{value}_x"]
    if isinstance(value, tuple):
        are_numbers = value and all(map(_is_number, value))
        return [tuple(item * 0.93 for item in value)] if are_numbers else []
    return _by_words(words) if value in (None, inspect.Parameter.empty) else []


def snapshot(optimizer: object) -> dict[str, str]:
    """Return everything plain that an optimizer holds: path -> value as text."""
    return dict(_walk(optimizer, "", frozenset()))


def _by_words(words: set[str]) -> list[Any]:
    if "bool" in words:
        return [True]
    if "Tuple" in words or "tuple" in words:
        return [(0.0371, 0.0371)]
    if "float" in words or "int" in words:
        return [0.0371] if "float" in words else [3]
    return [0.0371, 3, True]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _walk(value: Any, path: str, above: frozenset[int]) -> Iterator[tuple[str, str]]:
    """Yield what is below a value; parameters and what was seen above are left out."""
    if isinstance(value, torch.nn.Parameter) or len(above) > _DEPTH:
        return
    if isinstance(value, torch.Tensor):
        shown = value.tolist() if value.numel() <= _FEW else tuple(value.shape)
        yield path, f"{value.dtype} {shown}"
        return
    if value is None or isinstance(value, (bool, int, float, str, complex)):
        yield path, repr(value)
        return
    if isinstance(value, (type, types.ModuleType)):
        yield path, value.__name__
        return
    if id(value) in above:
        return
    for name, item in _children(value):
        yield from _walk(item, f"{path}.{name}", above | {id(value)})
    yield path, type(value).__qualname__


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield (str(key) if isinstance(key, str) else type(key).__name__), item
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((str(index), item) for index, item in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("kw", value.keywords))
    elif isinstance(value, types.MethodType):
        yield "self", value.__self__
    elif callable(value) and hasattr(value, "__code__"):
        yield from _of_function(value)
    else:
        slots = [n for base in type(value).__mro__ for n in _slots_of(base)]
        held = {n: getattr(value, n) for n in slots if hasattr(value, n)}
        held |= getattr(value, "__dict__", {})
        for name, item in held.items():
            if not _SKIPPED.search(name):
                yield name, item


def _slots_of(base: type) -> tuple[str, ...]:
    slots = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _of_function(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    yield "name", function.__qualname__
    for number, cell in enumerate(getattr(function, "__closure__", None) or ()):
        try:
            yield f"cell{number}", cell.cell_contents
        except ValueError:
            continue  # not filled yet
