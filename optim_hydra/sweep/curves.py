"""Read the metrics that a job logged."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Curve", "read_curves"]

log = logging.getLogger(__name__)
Curve = tuple[list[int], list[float]]
"""Steps and values."""


def read_curves(path: Path) -> dict[str, Curve]:
    """Return metric -> its steps and values; the first column has the steps.

    A row that is written just now, or was cut short, is left out, and so is a cell
    that is empty or no number. NaN and infinities are kept: a run that diverged ends
    in them. A file that can't be read is named in the log.
    """
    if not path.exists():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            names = next(reader, [])
            rows = [row for row in reader if len(row) == len(names)]
    except (OSError, UnicodeError, csv.Error) as error:
        log.warning("%s was left out, it can't be read: %s", path, error)
        return {}
    columns = list(zip(*rows, strict=True))
    if not columns:
        return {}
    steps = _numbers(columns[0])
    curves: dict[str, Curve] = {}
    for name, cells in zip(names[1:], columns[1:], strict=True):
        pairs = [
            (int(step), value)
            for step, value in zip(steps, _numbers(cells), strict=True)
            if step is not None and math.isfinite(step) and value is not None
        ]
        if pairs:
            curves[name] = ([step for step, _ in pairs], [value for _, value in pairs])
    return curves


def _numbers(cells: Sequence[str]) -> Sequence[float | None]:
    """Return the cells as numbers, all at once where all are some."""
    try:
        return list(map(float, cells))
    except ValueError:
        return list(map(_number, cells))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
