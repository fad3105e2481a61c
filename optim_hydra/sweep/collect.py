"""Collect the records of sweeps into tables, also while they run or after a crash."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from optim_hydra.errors import WrongObjectError, nearest
from optim_hydra.sweep.curves import read_curves
from optim_hydra.sweep.job_tables import Job, curves_table, jobs_table
from optim_hydra.sweep.metrics import METRICS
from optim_hydra.sweep.records import (
    JOB,
    SWEEP,
    JobRecord,
    RecordError,
    SweepRecord,
    job_files,
    read_record,
    sweep_around,
)
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.settings import COLUMNS, swept_keys

__all__ = ["collect"]

log = logging.getLogger(__name__)
_LOST = "the process of this job ended without a result (killed, or out of memory)"


def collect(
    folders: Sequence[Path], *, direction: str | None = None, metric: str | None = None
) -> SweepResults:
    """Read the folders of one or several sweeps.

    Args:
        folders: Each with the jobs' folders in it, or with sweeps' folders.
        direction: minimize or maximize; None: as the sweep was started.
        metric: What ranks the jobs; None: as the sweep was started.

    Raises:
        WrongObjectError: A folder has no jobs, or is one's; or there is no such
            direction.

    """
    by_sweep: list[list[Job]] = []
    sweeps: list[SweepRecord] = []
    folders = [sweep for folder in folders for sweep in _sweeps_in(folder)]
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
        by_sweep.append(jobs)
        sweeps += [sweep] if sweep else []
    found = [job for jobs in by_sweep for job in jobs]
    wanted = direction or (sweeps[0].direction if sweeps else "minimize")
    if wanted not in ("minimize", "maximize"):
        msg = f"direction={wanted!r} is none of minimize, maximize"
        raise WrongObjectError(msg)
    _check_metric(found, metric)
    for configured in {sweep.metric for sweep in sweeps if metric is None}:
        # The sweep has run: its results are shown, by what was returned.
        try:
            _check_metric(found, configured)
        except WrongObjectError as error:
            log.warning("hydra.callbacks.sweep_report.metric: %s", error)
    known = [[job.settings for job in jobs if not _is_lost(job)] for jobs in by_sweep]
    swept = swept_keys(known)
    nodes = {
        f"{at} (node)" if at in (*swept, *COLUMNS) else at: at
        for job in found
        for at in job.record.nodes
    }
    titles = list(dict.fromkeys(sweep.title for sweep in sweeps))
    return SweepResults(
        title=", ".join(titles) or ", ".join(folder.name for folder in folders),
        direction="minimize" if wanted == "minimize" else "maximize",
        jobs=jobs_table(found, swept, nodes, metric),
        curves=curves_table(found),
        swept=swept,
        nodes=list(nodes),
    )


def _is_lost(job: Job) -> bool:
    """Whether its record can't be read, and no plan has its overrides."""
    record = job.record
    return record.status == "failed" and not (record.overrides or record.started)


def _check_metric(jobs: Sequence[Job], metric: str | None) -> None:
    known = {name for job in jobs for name in job.curves}
    known |= {
        name
        for job in jobs
        if isinstance(job.record.result, dict)
        for name in job.record.result
    }
    is_done = any(job.record.status == "completed" for job in jobs)
    if metric is not None and is_done and metric not in known:
        msg = f"no job returned or logged {metric!r}{nearest(metric, sorted(known))}"
        raise WrongObjectError(msg)


def _sweeps_in(folder: Path) -> list[Path]:
    """Return the folders of the sweeps in a folder, itself if it is one.

    Raises:
        WrongObjectError: It is a job's.

    """
    if (folder / SWEEP).exists():
        return [folder]
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        if SWEEP in files or JOB in files:
            folders.clear()
        folders.sort()
        found += [Path(place)] if SWEEP in files else []
    if not found and (around := sweep_around(folder)):
        msg = f"{folder} is inside a sweep's folder: optim-hydra report {around}"
        raise WrongObjectError(msg)
    return found or [folder]


def _sweep_of(folder: Path) -> SweepRecord | None:
    try:
        return read_record(folder / SWEEP, SweepRecord)
    except RecordError:
        return None


def _jobs_of(folder: Path, sweep: SweepRecord | None, start: str) -> list[Job]:
    jobs: dict[int, Job] = {}
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
        if sweep and not sweep.has(record):
            continue
        if record.is_dead:
            record.status, record.error = "failed", _LOST
        curves = read_curves(path.with_name(METRICS))
        label = f"{start}{record.job}"
        jobs[record.job] = Job(record, path.parent, sweep, label, curves)
    for number, overrides in enumerate(planned):
        if number not in jobs:
            record = JobRecord(job=number, overrides=overrides, status="missing")
            place = folder / str(number)
            jobs[number] = Job(record, place, sweep, f"{start}{number}", {})
    return [jobs[number] for number in sorted(jobs)]
