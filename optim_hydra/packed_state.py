"""Pack state by parameter name into few large tensors, for one file.

A file format pays for each item: torch.save writes an archive member for each tensor,
and a step of training has nothing to do with how many there are. Here the entries of
one key, such as `state.*.exp_avg`, are one column: a flat tensor, or a list of values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from optim_hydra.errors import Problem
from optim_hydra.saved_state import StateError

__all__ = ["pack", "unpacked"]

_INDEX = "packed.index"
_COLUMN = "packed.{}"
_KINDS = ("state", "param_groups", "optim_hydra")
_PLAIN = frozenset({bool, int, float, str, type(None)})
_Column = tuple[list[int], list[Any]]
"""Numbers of parameters, and what each of them has."""


def pack(state: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return state by name in columns; what is no plain value stays as it is.

    Args:
        state: What `optimizer_state_dict` returns.
        names: The names of the parameters.

    """
    known = {name: number for number, name in enumerate(names)}
    packed: dict[str, Any] = {}
    described: list[dict[str, Any]] = []
    columns, others = _columns(state, known)
    order = list(known)
    for (kind, key), (numbers, values) in columns.items():
        for layout, of, held in _by_layout(numbers, values):
            if layout is None:
                entries = _entries(kind, [order[number] for number in of], key)
                packed |= dict(zip(entries, held, strict=True))
                continue
            whole = of == list(range(len(known)))
            told = {"kind": kind, "key": key, "names": None if whole else of}
            if layout is _PLAIN:
                distinct, told["which"] = _distinct(held, _texts(held))
                told["values"] = list(map(_written, distinct))
            else:
                shapes = [value.shape for value in held]
                told["shapes"], told["which"] = _distinct(shapes, shapes)
                flat = torch.cat([v.reshape(-1) for v in held])
                packed[_COLUMN.format(len(described))] = flat
            described.append(told)
    packed |= others
    packed[_INDEX] = json.dumps({"names": order, "columns": described})
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
            entries = _entries(column["kind"], names, column["key"])
            state |= zip(entries, values, strict=True)
    except (ValueError, KeyError, IndexError, TypeError, RuntimeError) as error:
        what = f"the packed state can't be read ({type(error).__name__}: {error}):"
        what += " load the whole file, as optimizer_state_dict(packed=True) made it"
        raise StateError([Problem(what, "", StateError)]) from error
    return state


def _columns(
    state: Mapping[str, Any], known: Mapping[str, int]
) -> tuple[dict[tuple[str, str], _Column], dict[str, Any]]:
    """Sort entries by kind and key; the others are of no parameter."""
    columns: dict[tuple[str, str], _Column] = {}
    others: dict[str, Any] = {}
    # The entries of a parameter follow each other.
    start, number, own = None, -1, dict[str, _Column]()
    rows: dict[str, dict[str, _Column]] = {kind: {} for kind in _KINDS}
    for entry, value in state.items():
        before, _, key = entry.rpartition(".")
        if before != start:
            kind, name, key = _split(entry, known)
            if name is None:
                others[entry] = value
                continue
            start = before if entry == f"{before}.{key}" else None
            number, own = known[name], rows[kind]
        column = own.get(key)
        if column is None:
            column = own[key] = columns[kind, key] = ([], [])
        column[0].append(number)
        column[1].append(value)
    return columns, others


def _split(entry: str, known: Mapping[str, int]) -> tuple[str, str | None, str]:
    """Split an entry into kind, name and key; no name where it is of no parameter."""
    kind, _, rest = entry.partition(".")
    if kind not in _KINDS:
        return kind, None, ""
    if rest in known:
        return kind, rest, ""
    at = len(rest)
    while (at := rest.rfind(".", 0, at)) >= 0:
        if rest[:at] in known:
            return kind, rest[:at], rest[at + 1 :]
    return kind, None, ""


def _entries(kind: str, names: Iterable[str], key: str) -> list[str]:
    end = key and f".{key}"
    return [f"{kind}.{name}{end}" for name in names]


def _by_layout(
    numbers: list[int], values: list[Any]
) -> Iterator[tuple[Any, list[int], list[Any]]]:
    """Part a column into those that can be kept together; None where there are none."""
    layouts = (
        [_PLAIN]
        if _PLAIN.issuperset(map(type, values))
        else list(map(_layout_of, values))
    )
    if len(set(layouts)) == 1:
        yield layouts[0], numbers, values
        return
    parts: dict[Any, _Column] = {}
    for layout, number, value in zip(layouts, numbers, values, strict=True):
        of, held = parts.setdefault(layout, ([], []))
        of.append(number)
        held.append(value)
    for layout, (of, held) in parts.items():
        yield layout, of, held


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


def _distinct(
    values: Sequence[Any], marks: Sequence[Hashable]
) -> tuple[list[Any], list[int] | None]:
    """Return the different values, and which one each is; None where all are one."""
    held = dict(zip(marks, values, strict=True))
    distinct = list(held.values())
    if len(distinct) == 1:
        return distinct, None
    index = {mark: number for number, mark in enumerate(held)}
    return distinct, [index[mark] for mark in marks]


def _texts(values: Sequence[Any]) -> list[str]:
    """Return what tells values apart, such as 1 from True."""
    ids = list(map(id, values))
    # The parameters of a group have the very same values.
    once = dict(zip(ids, values, strict=True))
    texts = {each: f"{type(value)} {value!r}" for each, value in once.items()}
    return [texts[each] for each in ids]


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
