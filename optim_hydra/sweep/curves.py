"""Read the metrics that a job logged."""

from __future__ import annotations

import csv
import math
from pathlib import Path

__all__ = ["Curve", "read_curves"]

Curve = tuple[list[int], list[float]]
"""Steps and values."""


def read_curves(path: Path) -> dict[str, Curve]:
    """Return metric -> its steps and values; the first column has the steps.

    A row that is written just now, or was cut short, is left out, and so is a cell
    that is empty or no number.
    """
    curves: dict[str, Curve] = {}
    if not path.exists():
        return curves
    with path.open(newline="") as file:
        rows = csv.reader(file)
        columns = next(rows, [])
        for row in rows:
            step = _number(row[0]) if len(row) == len(columns) else None
            if step is None:
                continue
            for name, cell in zip(columns[1:], row[1:], strict=True):
                value = _number(cell)
                if value is not None:
                    steps, values = curves.setdefault(name, ([], []))
                    steps.append(int(step))
                    values.append(value)
    return curves


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
