"""Join the jobs that differ by their seed alone, and rank settings and jobs."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from optim_hydra.sweep.results import SweepResults

__all__ = ["Setting", "over_seeds", "ranked_jobs", "setting_keys"]


@dataclass(frozen=True)
class Setting:
    """The jobs with the same values of all swept keys but seeds."""

    values: tuple[Any, ...]
    """One for each of `setting_keys`; None for a key that another sweep swept."""
    mean: float
    """Over the results, NaN if there is none."""
    std: float
    """Sample standard deviation, NaN for fewer than two results."""
    num_results: int
    num_failed: int
    rows: list[int]
    """Row numbers in `SweepResults.jobs`."""


def setting_keys(swept: list[str]) -> list[str]:
    """Return the swept keys that are no seed."""
    return [key for key in swept if key != "seed" and not key.endswith(".seed")]


def ranked_jobs(results: SweepResults) -> list[tuple[int, float]]:
    """Return row number and result of all jobs, the best first.

    What can't win comes last with the result NaN: what has failed, is not finished, or
    returned NaN or inf.
    """
    found = _valid(results)
    sign = _sign(results)
    rows = sorted(range(len(found)), key=lambda row: _key(found[row], sign))
    return [(row, found[row]) for row in rows]


def over_seeds(results: SweepResults) -> list[Setting]:
    """Return the settings, ranked by the mean result over their seeds.

    Settings with a failed job come after those without: the seeds that survived say
    nothing about the others. Of jobs with equal configs one counts.
    """
    keys = setting_keys(results.swept)
    jobs = results.jobs
    columns = [[_hashable(value) for value in jobs[key].tolist()] for key in keys]
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in range(len(jobs)):
        groups[tuple(column[row] for column in columns)].append(row)
    found = _valid(results)
    statuses = jobs["status"].tolist()
    names = jobs["job"].tolist()
    origin = [
        same or name for same, name in zip(jobs["same_as"].tolist(), names, strict=True)
    ]
    settings = [
        _joined(values, rows, found, statuses, origin)
        for values, rows in groups.items()
    ]
    sign = _sign(results)
    return sorted(settings, key=lambda item: _setting_key(item, sign))


def _joined(
    values: tuple[Any, ...],
    rows: list[int],
    found: list[float],
    statuses: list[str],
    origin: list[str],
) -> Setting:
    # Of equal jobs the one with a result, so that a repetition replaces a failure.
    counted: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: math.isnan(found[row])):
        counted.setdefault(origin[row], row)
    given = [found[row] for row in counted.values() if not math.isnan(found[row])]
    return Setting(
        values=values,
        mean=statistics.fmean(given) if given else math.nan,
        std=statistics.stdev(given) if len(given) > 1 else math.nan,
        num_results=len(given),
        num_failed=sum(statuses[row] == "failed" for row in counted.values()),
        rows=rows,
    )


def _valid(results: SweepResults) -> list[float]:
    jobs = results.jobs
    return [
        float(result) if status == "completed" and math.isfinite(result) else math.nan
        for status, result in zip(
            jobs["status"].tolist(), jobs["result"].tolist(), strict=True
        )
    ]


def _sign(results: SweepResults) -> int:
    return 1 if results.direction == "minimize" else -1


def _key(result: float, sign: int) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(result) else (False, sign * result)


def _setting_key(setting: Setting, sign: int) -> tuple[bool, bool, float]:
    last, mean = _key(setting.mean, sign)
    return last, setting.num_failed > 0, mean


def _hashable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
