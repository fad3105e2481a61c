"""Pack state by parameter name into few large tensors, for one file.

A file format pays for each item: torch.save writes an archive member for each tensor,
and a step of training has nothing to do with how many there are. Here the entries of
one key, such as `state.*.exp_avg`, are one column: a flat tensor, or a list of values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from optim_hydra.errors import Problem
from optim_hydra.saved_state import StateError

__all__ = ["pack", "unpacked"]

_INDEX = "packed.index"
_COLUMN = "packed.{}"
_KINDS = ("state", "param_groups", "optim_hydra")
_PLAIN = (bool, int, float, str, type(None))


def pack(state: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return state by name in columns; what is no plain value stays as it is.

    Args:
        state: What `optimizer_state_dict` returns.
        names: The names of the parameters.

    """
    known = {name: number for number, name in enumerate(names)}
    columns: dict[Any, tuple[list[int], list[Any]]] = {}
    packed: dict[str, Any] = {}
    split = _Splitter(known)
    for entry, value in state.items():
        kind, name, key = split(entry)
        layout = _layout_of(value)
        if name is None or layout is None:
            packed[entry] = value
            continue
        column = columns.get((kind, key, layout))
        if column is None:
            column = columns[kind, key, layout] = ([], [])
        column[0].append(known[name])
        column[1].append(value)
    described = []
    for number, ((kind, key, layout), (numbers, values)) in enumerate(columns.items()):
        whole = numbers == list(range(len(known)))
        told: dict[str, Any] = {"kind": kind, "key": key}
        told["names"] = None if whole else numbers
        if layout is _PLAIN:
            distinct, told["which"] = _distinct(values)
            told["values"] = list(map(_written, distinct))
        else:
            told["shapes"], told["which"] = _distinct([v.shape for v in values])
            packed[_COLUMN.format(number)] = torch.cat([v.reshape(-1) for v in values])
        described.append(told)
    packed[_INDEX] = json.dumps({"names": list(known), "columns": described})
    return packed


def unpacked(saved: Any) -> Any:
    """Return state by name where it was packed, and anything else as it is.

    Raises:
        StateError: A column is missing, or is not as long as it was.

    """
    if not isinstance(saved, Mapping) or _INDEX not in saved:
        return saved
    try:
        index = json.loads(saved[_INDEX])
        state = {k: v for k, v in saved.items() if not k.startswith("packed.")}
        for number, column in enumerate(index["columns"]):
            numbers = column["names"]
            names = index["names"]
            names = names if numbers is None else [names[each] for each in numbers]
            tensor = saved.get(_COLUMN.format(number))
            values = _values(column, len(names), tensor)
            start, end = f"{column['kind']}.", column["key"] and f".{column['key']}"
            pairs = zip(names, values, strict=True)
            state |= {f"{start}{name}{end}": value for name, value in pairs}
    except (ValueError, KeyError, IndexError, TypeError, RuntimeError) as error:
        what = f"the packed state can't be read ({type(error).__name__}: {error}):"
        what += " load the whole file, as optimizer_state_dict(packed=True) made it"
        raise StateError([Problem(what, "", StateError)]) from error
    return state


class _Splitter:
    """Split entries into kind, name and key; no name where it is of no parameter."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known = known
        self._starts = {
            f"{kind}.{name}": (kind, name) for kind in _KINDS for name in known
        }

    def __call__(self, entry: str) -> tuple[str, str | None, str]:
        start, _, key = entry.rpartition(".")
        found = self._starts.get(start)
        if found is not None and entry not in self._starts:
            return (*found, key)
        kind, _, rest = entry.partition(".")
        if kind not in _KINDS:
            return kind, None, ""
        if rest in self._known:
            return kind, rest, ""
        at = len(rest)
        while (at := rest.rfind(".", 0, at)) >= 0:
            if rest[:at] in self._known:
                return kind, rest[:at], rest[at + 1 :]
        return kind, None, ""


def _layout_of(value: Any) -> Any:
    """Return what the values of a column have in common; None where there is none."""
    cls = type(value)
    if cls in _PLAIN:
        return _PLAIN
    if cls is Tensor:
        is_plain = value.layout is torch.strided and not value.is_quantized
        is_plain = is_plain and not (value.is_meta or value.requires_grad)
        return (value.dtype, value.device) if is_plain else None
    is_list = cls in (list, tuple) and all(type(item) in _PLAIN for item in value)
    return _PLAIN if is_list else None


def _written(value: Any) -> Any:
    """Return what JSON can write, which knows no tuples."""
    return {"tuple": value} if type(value) is tuple else value


def _read(value: Any) -> Any:
    return tuple(value["tuple"]) if isinstance(value, dict) else value


def _distinct(values: Sequence[Any]) -> tuple[list[Any], list[int] | None]:
    """Return the different values, and which one each is; None where all are one."""
    by_id: dict[int, int] = {}
    by_text: dict[str, int] = {}
    distinct: list[Any] = []
    which = []
    for value in values:
        # The parameters of a group have the very same values.
        number = by_id.get(id(value))
        if number is None:
            number = by_text.setdefault(f"{type(value)} {value!r}", len(distinct))
            if number == len(distinct):
                distinct.append(value)
            by_id[id(value)] = number
        which.append(number)
    return distinct, which if len(distinct) > 1 else None


def _values(column: Mapping[str, Any], number: int, tensor: Tensor | None) -> list[Any]:
    """Return the values of a column, one for each of its names."""
    which = column["which"] or [0] * number
    if "values" in column:
        values = [_read(value) for value in column["values"]]
        return [values[each] for each in which]
    if tensor is None:
        raise KeyError(column["key"])
    shapes = column["shapes"]
    sizes = [math.prod(shapes[each]) for each in which]
    parts: Sequence[Tensor] = torch.split(tensor, sizes)
    return [p.view(shapes[w]) for p, w in zip(parts, which, strict=True)]
