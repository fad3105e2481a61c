"""Turn the results into the plain data that the page's script reads."""

from __future__ import annotations

import math
from typing import Any

from optim_hydra.sweep.page_curves import NUM_FULL, Curves
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import Setting, ranked_jobs, setting_keys

__all__ = ["is_set", "page_data", "shown"]

_EXACT_BELOW = 1e15
_SMALL, _LARGE = 1e-4, 1e6


def shown(value: object) -> str:
    """Return a value for a reader: four digits of a fraction, whole numbers whole."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if float(value).is_integer() and abs(value) < _EXACT_BELOW:
        return str(int(value))
    if _SMALL <= abs(value) < _LARGE:
        return f"{float(f'{value:.4g}'):g}"
    digits, exponent = f"{value:.3e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def is_set(value: object) -> bool:
    """Whether a job has a value of a key: no value is None, NaN or no text."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value not in (None, "") and not is_nan


def page_data(
    results: SweepResults, settings: list[Setting], curves: Curves
) -> dict[str, Any]:
    """Return the results with the jobs in the order of their rank.

    `curves` has the jobs in that order too.
    """
    ranked = ranked_jobs(results)
    jobs = results.jobs.iloc[[row for row, _ in ranked]]
    place = {row: rank for rank, (row, _) in enumerate(ranked)}
    columns = {
        str(name): [_plain(value) for value in jobs[name].tolist()] for name in jobs
    }
    columns["result"] = [_plain(result) for _, result in ranked]
    keys = setting_keys(results.swept)
    names = [_end(key, keys) for key in keys]
    return {
        "direction": results.direction,
        "swept": results.swept,
        "keys": keys,
        "nodes": results.nodes,
        "jobs": columns,
        # Not among the columns, where a key of the sweep may be called `rank`.
        "ranks": [
            None if math.isnan(result) else rank + 1
            for rank, (_, result) in enumerate(ranked)
        ],
        "settings": [_setting(setting, names, place) for setting in settings],
        "failures": _failures(columns["status"], columns["error"]),
        "curves": curves.places,
        "full": NUM_FULL,
    }


def _setting(
    setting: Setting, names: list[str], place: dict[int, int]
) -> dict[str, Any]:
    return {
        "label": _label(setting, names),
        "values": list(setting.values),
        "mean": _plain(setting.mean),
        "std": _plain(setting.std),
        "n": setting.num_results,
        "failed": setting.num_failed,
        "jobs": sorted(place[row] for row in setting.rows),
    }


def _label(setting: Setting, names: list[str]) -> str:
    given = [
        (name, shown(value))
        for name, value in zip(names, setting.values, strict=True)
        if is_set(value)
    ]
    if not given:
        return "nothing set" if names else "all jobs"
    if len(names) == 1:
        return given[0][1]
    return " · ".join(f"{name}={text}" for name, text in given)


def _end(key: str, keys: list[str]) -> str:
    """Return the shortest end of a key that no other key has."""
    parts = key.split(".")
    ends = (".".join(parts[start:]) for start in range(len(parts) - 1, 0, -1))
    alone = (
        end
        for end in ends
        if not any(f".{other}".endswith(f".{end}") for other in keys if other != key)
    )
    return next(alone, key)


def _failures(statuses: list[Any], errors: list[Any]) -> list[dict[str, Any]]:
    """Return the failed jobs, those with one and the same message together."""
    groups: dict[str, list[int]] = {}
    for rank, (status, error) in enumerate(zip(statuses, errors, strict=True)):
        if status == "failed":
            groups.setdefault(str(error or "").strip(), []).append(rank)
    return [
        {
            "title": (error.splitlines() or ["no message"])[-1],
            "error": error,
            "jobs": ranks,
        }
        for error, ranks in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _plain(value: Any) -> Any:
    """Return a value that JSON has; NaN and inf become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
