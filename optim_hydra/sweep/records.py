"""Keep what is known of one job in `job.json`, and of a sweep in `sweep.json`."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from optim_hydra.errors import OptimHydraError
from optim_hydra.sweep.plain_results import Result

__all__ = [
    "JOB",
    "SWEEP",
    "JobRecord",
    "RecordError",
    "SweepRecord",
    "job_files",
    "read_record",
    "sweep_around",
    "write_record",
]

JOB = "job.json"
SWEEP = "sweep.json"


class RecordError(OptimHydraError, ValueError):
    """A record of a sweep can't be read."""


@dataclass
class JobRecord:
    """What one job did."""

    job: int
    """Its number in the sweep."""
    overrides: list[str]
    """Texts of the command line that made it, those that all jobs share included."""
    status: str = "running"
    """running, completed or failed."""
    result: Result = None
    error: str = ""
    """Text of the exception, with those that it was raised from."""
    started: float = 0.0
    """Seconds since the epoch."""
    seconds: float = 0.0
    nodes: dict[str, Any] = field(default_factory=dict)
    """Full key of each optimizer node -> what it was resolved to."""
    config_hash: str = ""
    """Equal for jobs whose resolved configs are equal."""
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    sweep: str = ""
    """The `name` of its sweep, nothing where the job could not read it."""

    @property
    def is_of_this_process(self) -> bool:
        """Whether this very process began to run it, and has not ended it."""
        here = (socket.gethostname(), os.getpid())
        return self.status == "running" and (self.host, self.pid) == here

    @property
    def is_dead(self) -> bool:
        """Whether the process that ran it on this machine ended without a word."""
        if self.status != "running" or self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False


@dataclass
class SweepRecord:
    """How a sweep was started."""

    command: list[str]
    """The command line, interpreter first."""
    cwd: str
    direction: str
    """minimize or maximize."""
    metric: str | None
    """Which of several numbers ranks the jobs."""
    title: str
    jobs: list[list[str]] | None = None
    """Overrides of each job, where they are known from the start."""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells it from an earlier sweep into the same folder; resumed, it keeps it."""

    def has(self, job: JobRecord) -> bool:
        """Whether a job in the folder is of this sweep, not of an earlier one."""
        return job.sweep in ("", self.name)


T = TypeVar("T", JobRecord, SweepRecord)


def job_files(folder: Path) -> Iterator[Path]:
    """Yield each `job.json` below a folder; job folders are not looked into."""
    for place, folders, files in os.walk(folder):
        if JOB in files:
            folders.clear()
            yield Path(place, JOB)


def sweep_around(folder: Path) -> Path | None:
    """Return the folder of the sweep that a folder is inside of, such as a job's."""
    if (folder / SWEEP).exists():
        return None
    above = folder.absolute().parents
    found = next((place for place in above if (place / SWEEP).exists()), None)
    return above[0] if found is None and (folder / JOB).exists() else found


def write_record(path: Path, record: JobRecord | SweepRecord) -> None:
    """Write a record aside, then put it in place, so that no half of one is read."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.partial")
    aside.write_text(json.dumps(dataclasses.asdict(record), indent=1, default=str))
    aside.replace(path)


def _check_types(record: JobRecord | SweepRecord) -> None:
    """Check what is computed with.

    Raises:
        TypeError: A field is of another type.

    """
    lists = [record.overrides] if isinstance(record, JobRecord) else [record.command]
    if isinstance(record, JobRecord):
        numbers: list[object] = []
        numbers += record.result.values() if isinstance(record.result, dict) else []
        numbers += [] if isinstance(record.result, dict) else [record.result or 0]
        numbers += [record.job, record.pid, record.started, record.seconds]
        wrong = [value for value in numbers if not isinstance(value, (int, float))]
        nodes = record.nodes
        entries: list[object] = [nodes]
        entries += nodes.values() if isinstance(nodes, dict) else []
        wrong += [entry for entry in entries if not isinstance(entry, dict)]
        texts: list[object] = [record.status, record.error]
        texts += [record.config_hash, record.sweep]
    else:
        wrong = []
        texts = [record.cwd, record.direction, record.title, record.name]
        texts += [record.metric or ""]
        lists += record.jobs or []
    for each in lists:
        wrong += [] if isinstance(each, list) else [each]
        texts += each if isinstance(each, list) else []
    wrong += [value for value in texts if not isinstance(value, str)]
    if wrong:
        msg = f"{wrong[0]!r} is of the wrong type"
        raise TypeError(msg)


def read_record(path: Path, kind: type[T]) -> T:
    """Read a record.

    Raises:
        RecordError: There is none, or it is damaged or of another kind.

    """
    try:
        record = kind(**json.loads(path.read_text()))
        _check_types(record)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        msg = f"{path} can't be read: {error}"
        raise RecordError(msg) from error
    return record
