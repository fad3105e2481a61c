"""Draw curves in a terminal, as filled columns of block characters."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["chart"]

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PER_ROW = 8


def chart(values: Sequence[float], height: int, labels: Sequence[str]) -> list[str]:
    """Return the rows of a chart, one column for each value; the top is the largest.

    Args:
        values: Not negative.
        height: Rows.
        labels: What stands left of the top row and of the bottom row.

    Example:
        >>> chart([0.0, 0.5, 1.0], 2, ["1", "0"])
        ['1 ┤  █', '0 ┤ ██']

    """
    top = max(values, default=0.0) or 1.0
    eighths = [round(value / top * height * _PER_ROW) for value in values]
    width = max(map(len, labels))
    rows = []
    for row in reversed(range(height)):
        filled = [min(max(e - row * _PER_ROW, 0), _PER_ROW) for e in eighths]
        label = {height - 1: labels[0], 0: labels[-1]}.get(row, "")
        sign = "┤" if label else "│"
        cells = "".join(_EIGHTHS[number] for number in filled)
        rows.append(f"{label:>{width}} {sign}{cells}")
    return rows
