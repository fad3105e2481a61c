"""Read the metrics that a job logged."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Curve", "read_curves"]

Curve = tuple[list[int], list[float]]
"""Steps and values."""


def read_curves(path: Path) -> dict[str, Curve]:
    """Return metric -> its steps and values; the first column has the steps.

    A row that is written just now, or was cut short, is left out, and so is a cell
    that is empty or no number.
    """
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        reader = csv.reader(file)
        names = next(reader, [])
        columns = list(zip(*(r for r in reader if len(r) == len(names)), strict=True))
    if not columns:
        return {}
    steps = _numbers(columns[0])
    curves: dict[str, Curve] = {}
    for name, cells in zip(names[1:], columns[1:], strict=True):
        pairs = [
            (int(step), value)
            for step, value in zip(steps, _numbers(cells), strict=True)
            if step is not None and value is not None
        ]
        if pairs:
            curves[name] = ([step for step, _ in pairs], [value for _, value in pairs])
    return curves


def _numbers(cells: Sequence[str]) -> Sequence[float | None]:
    """Return the cells as numbers, all at once where all are some."""
    try:
        values = list(map(float, cells))
    except ValueError:
        return list(map(_number, cells))
    return values if all(map(math.isfinite, values)) else list(map(_number, cells))


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
