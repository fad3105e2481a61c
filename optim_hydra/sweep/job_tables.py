"""Put the jobs of sweeps into tables: one of the jobs, one of their curves."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from optim_hydra.sweep.curves import Curve
from optim_hydra.sweep.nodes import node_text
from optim_hydra.sweep.records import JobRecord, SweepRecord
from optim_hydra.sweep.settings import COLUMNS, settings_of

__all__ = ["Job", "curves_table", "jobs_table"]

_LARGEST = 2**63


@dataclass
class Job:
    """One job, as far as it is known."""

    record: JobRecord
    folder: Path
    sweep: SweepRecord | None
    label: str
    curves: dict[str, Curve]

    @property
    def settings(self) -> dict[str, str]:
        """Overrides as key -> value; no key is that of a column."""
        return settings_of(self.record.overrides)

    def last(self, name: str) -> float:
        """Return the value that a metric ended with; NaN where it has none."""
        return self.curves[name][1][-1] if name in self.curves else math.nan


def jobs_table(
    jobs: Sequence[Job],
    swept: Sequence[str],
    nodes: Mapping[str, str],
    metric: str | None,
) -> pd.DataFrame:
    """Return a row for each job.

    Args:
        jobs: In the order of the rows.
        swept: Keys of overrides whose values differ.
        nodes: Name of a column -> full key of its optimizer node.
        metric: What ranks the jobs; None: as their sweep was started.

    """
    first: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    metrics = list(dict.fromkeys(name for job in jobs for name in job.curves))
    for job in jobs:
        record = job.record
        same = first.setdefault(record.config_hash or job.label, job.label)
        ranked_by = metric or (job.sweep.metric if job.sweep else None)
        row: dict[str, Any] = {
            "job": job.label,
            "status": record.status,
            "result": _result(job, ranked_by),
            "seconds": record.seconds or math.nan,
            # A name of the file system may hold what no text can.
            "error": record.error.encode(errors="backslashreplace").decode(),
            "folder": str(job.folder),
            "command": _command(job),
            "same_as": "" if same == job.label else same,
        }
        settings = job.settings
        row |= {key: _number_or_text(settings.get(key)) for key in swept}
        row |= {name: node_text(record.nodes.get(at, {})) for name, at in nodes.items()}
        row |= {f"last.{name}": _finite(job.last(name)) for name in metrics}
        if ranked_by in job.curves and not math.isfinite(job.last(ranked_by)):
            row |= _diverged(row, f"{ranked_by} ended as {job.last(ranked_by)}")
        rows.append(row)
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(COLUMNS))
    for key in swept:
        values = [row[key] for row in rows]
        if any(isinstance(value, str) for value in values):
            table[key] = ["" if value is None else str(value) for value in values]
        elif None in values:
            table[key] = pd.Series(values, dtype=object)  # whole numbers stay whole
    return table


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _diverged(row: dict[str, Any], why: str) -> dict[str, Any]:
    """Return what a job is that completed with what can't be ranked."""
    if row["status"] != "completed":
        return {}
    return {"status": "failed", "result": math.nan, "error": why}


def _result(job: Job, metric: str | None) -> float:
    """Return what ranks a job; NaN where it did not complete."""
    result = job.record.result
    if job.record.status != "completed":
        return math.nan
    if isinstance(result, dict):
        name = metric or next(iter(result), "")
        if name in result:
            return result[name]
        result = None
    if metric in job.curves:
        return job.last(metric)
    return math.nan if result is None else result


def _command(job: Job) -> str:
    """Return the shell text that runs this one job again."""
    if job.sweep is None:
        return ""
    command = job.sweep.command
    # `python -m package.program -m`: the first is Python's own.
    start = 2 if command[1:2] == ["-m"] else 0
    typed = [text for text in command[start:] if not _is_sweep_text(text)]
    keys = {text.lstrip("+~").partition("=")[0] for text in job.record.overrides}
    kept = [t for t in typed if t.lstrip("+~").partition("=")[0] not in keys]
    return shlex.join([*command[:start], *kept, *job.record.overrides])


def _is_sweep_text(text: str) -> bool:
    starts = ("hydra.sweep.", "hydra/launcher", "hydra.launcher", "+sweep=")
    return text in ("-m", "--multirun") or text.startswith(starts)


def _number_or_text(text: str | None) -> float | int | str | None:
    if text is None:
        return None
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        fits = math.isfinite(number) and abs(number) < _LARGEST
        return number if fits else text
    return text


def curves_table(jobs: Sequence[Job]) -> pd.DataFrame:
    """Return a row for each finite value that a job logged."""
    columns: dict[str, list[Any]] = {"job": [], "metric": [], "step": [], "value": []}
    for job in jobs:
        for name, (steps, values) in job.curves.items():
            columns["job"] += [job.label] * len(steps)
            columns["metric"] += [name] * len(steps)
            columns["step"] += steps
            columns["value"] += values
    curves = pd.DataFrame(columns)
    sizes = pd.to_numeric(curves["value"]).abs()
    return curves[sizes < math.inf]  # NaN is not either
