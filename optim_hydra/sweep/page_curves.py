"""Thin the logged curves for the page, so that ten thousand jobs fit into one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["NUM_FULL", "NUM_POINTS", "Curves", "packed_curves", "thinned"]

NUM_POINTS = 200
"""Points that a curve may have on the page."""
NUM_FULL = 60
"""Jobs whose curves keep that many points, the best first."""
_BUDGET = 600_000
"""Points of all other jobs together; they share them."""
_FEWEST = 12

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """All curves end to end, and where each of them lies."""

    places: dict[str, list[tuple[int, int, int]]]
    """For each metric: row of the job, first point, number of points."""
    steps: Numbers
    values: npt.NDArray[np.float32]
    num_points: int
    """Points that a curve of a job not among the best may have."""


def packed_curves(curves: pd.DataFrame, names: Sequence[str]) -> Curves:
    """Thin every curve and lay them end to end.

    Args:
        curves: The columns `job`, `metric`, `step`, `value`.
        names: The jobs, the best first; a curve keeps the number of its job's place.

    """
    metric, found = pd.factorize(curves["metric"])
    metrics = [str(name) for name in found]
    job = pd.Index(names).get_indexer(pd.Index(curves["job"]))
    curve = metric * len(names) + job
    steps: Numbers = curves["step"].to_numpy(np.float64)
    values: Numbers = curves["value"].to_numpy(np.float64, copy=True)
    values[np.isinf(values)] = np.nan  # a gap, like NaN: neither has a place on an axis
    order = np.lexsort((steps, curve))
    order = order[job[order] >= 0]
    curve, steps, values = curve[order], steps[order], values[order]
    keys, starts = np.unique(curve, return_index=True)
    ends = np.append(starts[1:], len(order))
    others = int((keys % max(len(names), 1) >= NUM_FULL).sum())
    share = max(_FEWEST, min(NUM_POINTS, _BUDGET // max(others, 1)))
    places: dict[str, list[tuple[int, int, int]]] = {name: [] for name in metrics}
    kept, first = [np.empty(0, np.int64)], 0
    for key, start, end in zip(
        keys.tolist(), starts.tolist(), ends.tolist(), strict=False
    ):
        number, place = divmod(key, len(names))
        points = thinned(values[start:end], NUM_POINTS if place < NUM_FULL else share)
        places[metrics[number]].append((place, first, len(points)))
        kept.append(points + start)
        first += len(points)
    chosen = np.concatenate(kept)
    with np.errstate(over="ignore"):  # what is beyond the page's numbers is not drawn
        drawn = values[chosen].astype(np.float32)
    return Curves(places, steps[chosen], drawn, share)


def thinned(values: Numbers, limit: int) -> npt.NDArray[np.int64]:
    """Return which points of a curve to keep: its ends, and the extremes of each part.

    The curve is cut into parts of equal size, so its lowest and its highest value are
    kept, wherever they are. What is short enough is kept whole.
    """
    num = len(values)
    if num <= limit:
        return np.arange(num)
    parts = (limit - 2) // 2
    size = -(-num // parts)
    padded = np.full(parts * size, np.nan)
    padded[:num] = values
    table = padded.reshape(parts, size)
    offset = np.arange(parts) * size
    low = np.where(np.isnan(table), np.inf, table).argmin(axis=1) + offset
    high = np.where(np.isnan(table), -np.inf, table).argmax(axis=1) + offset
    kept = np.unique(np.concatenate([[0], low, high, [num - 1]]))
    return kept[kept < num]
