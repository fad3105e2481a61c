"""Collect the records of sweeps into tables, also while they run or after a crash."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from optim_hydra.errors import WrongObjectError, nearest
from optim_hydra.sweep.curves import Curve, read_curves
from optim_hydra.sweep.metrics import METRICS
from optim_hydra.sweep.nodes import node_text
from optim_hydra.sweep.records import (
    SWEEP,
    JobRecord,
    RecordError,
    SweepRecord,
    job_files,
    read_record,
)
from optim_hydra.sweep.results import SweepResults

__all__ = ["collect"]

_COLUMNS = (
    "job",
    "status",
    "result",
    "seconds",
    "error",
    "folder",
    "command",
    "same_as",
)
_LARGEST = 2**63
_LOST = "the process of this job ended without a result (killed, or out of memory)"


@dataclass
class _Job:
    record: JobRecord
    folder: Path
    sweep: SweepRecord | None
    label: str
    curves: dict[str, Curve]

    @property
    def settings(self) -> dict[str, str]:
        """Overrides as key -> value; no key is that of a column."""
        pairs = (text.lstrip("+~").partition("=") for text in self.record.overrides)
        return {
            f"{key} (override)" if key in _COLUMNS else key: value
            for key, _, value in pairs
        }

    def last(self, name: str) -> float:
        """Return the value that a metric ended with; NaN where it has none."""
        return self.curves[name][1][-1] if name in self.curves else math.nan


def collect(
    folders: Sequence[Path], *, direction: str | None = None, metric: str | None = None
) -> SweepResults:
    """Read the folders of one or several sweeps.

    Args:
        folders: Each with the jobs' folders in it.
        direction: minimize or maximize; None: as the sweep was started.
        metric: What ranks the jobs; None: as the sweep was started.

    Raises:
        WrongObjectError: A folder has no jobs, or there is no such direction.

    """
    found: list[_Job] = []
    sweeps: list[SweepRecord] = []
    names = Counter(folder.name for folder in folders)
    for folder in folders:
        sweep = _sweep_of(folder)
        name = folder.name if names[folder.name] == 1 else str(folder)
        start = f"{name}/" if len(folders) > 1 else ""
        jobs = _jobs_of(folder, sweep, start)
        if not jobs and sweep is None:
            msg = (
                f"{folder} has no jobs of a sweep: is sweep_report among its callbacks?"
            )
            raise WrongObjectError(msg)
        found += jobs
        sweeps += [sweep] if sweep else []
    wanted = direction or (sweeps[0].direction if sweeps else "minimize")
    if wanted not in ("minimize", "maximize"):
        msg = f"direction={wanted!r} is none of minimize, maximize"
        raise WrongObjectError(msg)
    _check_metric(found, metric)
    swept = _swept([job.settings for job in found])
    nodes = list(dict.fromkeys(at for job in found for at in job.record.nodes))
    titles = list(dict.fromkeys(sweep.title for sweep in sweeps))
    return SweepResults(
        title=", ".join(titles) or ", ".join(folder.name for folder in folders),
        direction="minimize" if wanted == "minimize" else "maximize",
        jobs=_table(found, swept, nodes, metric),
        curves=_curves(found),
        swept=swept,
        nodes=nodes,
    )


def _check_metric(jobs: Sequence[_Job], metric: str | None) -> None:
    known = {name for job in jobs for name in job.curves}
    known |= {
        name
        for job in jobs
        if isinstance(job.record.result, dict)
        for name in job.record.result
    }
    if metric is not None and jobs and metric not in known:
        msg = f"no job returned or logged {metric!r}{nearest(metric, sorted(known))}"
        raise WrongObjectError(msg)


def _sweep_of(folder: Path) -> SweepRecord | None:
    try:
        return read_record(folder / SWEEP, SweepRecord)
    except RecordError:
        return None


def _jobs_of(folder: Path, sweep: SweepRecord | None, start: str) -> list[_Job]:
    jobs: dict[int, _Job] = {}
    planned = (sweep.jobs if sweep else None) or []
    for path in job_files(folder):
        try:
            record = read_record(path, JobRecord)
        except RecordError as error:
            # Hydra's own name of a job's folder is its number.
            name = path.parent.name
            number = int(name) if name.isdecimal() else len(jobs)
            typed = planned[number] if number < len(planned) else []
            record = JobRecord(number, typed, status="failed", error=str(error))
        if record.is_dead:
            record.status, record.error = "failed", _LOST
        curves = read_curves(path.with_name(METRICS))
        label = f"{start}{record.job}"
        jobs[record.job] = _Job(record, path.parent, sweep, label, curves)
    for number, overrides in enumerate(planned):
        if number not in jobs:
            record = JobRecord(job=number, overrides=overrides, status="missing")
            place = folder / str(number)
            jobs[number] = _Job(record, place, sweep, f"{start}{number}", {})
    return [jobs[number] for number in sorted(jobs)]


def _swept(settings: Iterable[dict[str, str]]) -> list[str]:
    """Name the keys whose values differ between jobs."""
    rows = [row for row in settings if row]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [key for key in keys if len({row.get(key) for row in rows}) > 1]


def _table(
    jobs: Sequence[_Job], swept: Sequence[str], nodes: Sequence[str], metric: str | None
) -> pd.DataFrame:
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
        row |= {key: _number_or_text(job.settings.get(key, "")) for key in swept}
        row |= {at: node_text(record.nodes.get(at, {})) for at in nodes}
        row |= {f"last.{name}": _finite(job.last(name)) for name in metrics}
        if ranked_by in job.curves and not math.isfinite(job.last(ranked_by)):
            row |= _diverged(row, f"{ranked_by} ended as {job.last(ranked_by)}")
        rows.append(row)
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(_COLUMNS))
    for key in swept:
        if len(set(map(type, table[key]))) > 1:
            table[key] = table[key].map(str)
    return table


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.nan


def _diverged(row: dict[str, Any], why: str) -> dict[str, Any]:
    """Return what a job is that completed with what can't be ranked."""
    if row["status"] != "completed":
        return {}
    return {"status": "failed", "result": math.nan, "error": why}


def _result(job: _Job, metric: str | None) -> float:
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


def _command(job: _Job) -> str:
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


def _number_or_text(text: str) -> float | int | str:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        fits = math.isfinite(number) and abs(number) < _LARGEST
        return number if fits else text
    return text


def _curves(jobs: Sequence[_Job]) -> pd.DataFrame:
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
