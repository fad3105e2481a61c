"""Tell how far a running sweep is, and report when it ends."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from optim_hydra.sweep.records import (
    JobRecord,
    RecordError,
    SweepRecord,
    job_files,
    read_record,
    write_record,
)

__all__ = ["SweepWatch", "count_failed", "watch_sweep"]

log = logging.getLogger(__name__)
_WATCHES: list[SweepWatch] = []


class SweepWatch:
    """Look at a sweep's folder now and then, from the process that started it."""

    def __init__(self, folder: Path, record: SweepRecord) -> None:
        """Look at nothing yet."""
        self.folder, self.record = folder, record
        self.done: dict[Path, JobRecord] = {}
        self._started = time.time()
        self._num_told = -1
        self._ended = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def start(self) -> None:
        """Follow the sweep until the process ends, then report."""
        self._thread.start()
        # Hydra ends with an exception where a job failed, and calls no callback then.
        atexit.register(self.finish)

    def look(self) -> bool:
        """Read what is new; tell whether there was anything."""
        before = len(self.done)
        for path in job_files(self.folder):
            known = self.done.get(path)
            if known is None or known.status == "failed":  # which is run once more
                try:
                    job = read_record(path, JobRecord)
                except RecordError:
                    continue
                self.done.pop(path, None)
                if job.status != "running" and not self._is_earlier(job):
                    self.done[path] = job
        return len(self.done) > before

    def _is_earlier(self, job: JobRecord) -> bool:
        """Whether a job is of an earlier sweep, or failed before this run of it."""
        failed_before = job.status == "failed" and job.started < self._started
        return failed_before or not self.record.has(job)

    def line(self) -> str:
        """Return one line: how many are done and failed, and how long it may take."""
        total = len(self.record.jobs) if self.record.jobs else None
        text = f"{len(self.done)} of {total}" if total else f"{len(self.done)}"
        text += " jobs done"
        failed = self.num_failed
        text += f", {failed} failed" if failed else ""
        if total and 0 < len(self.done) < total:
            each = (time.time() - self._started) / len(self.done)
            text += f", about {_duration(each * (total - len(self.done)))} to go"
        return text

    @property
    def num_failed(self) -> int:
        """Number of jobs that failed."""
        return sum(job.status == "failed" for job in self.done.values())

    @property
    def num_missing(self) -> int:
        """Number of planned jobs that left no record, where it is known."""
        return max(len(self.record.jobs or ()) - len(self.done), 0)

    def finish(self) -> None:
        """Stop following, and let another process write and print the report.

        This one is about to end, and imports no more (pandas would start threads).
        """
        if self._ended.is_set() or os.getpid() != self._pid:
            return
        self._ended.set()
        self._thread.join(timeout=5)
        self._end_interrupted()
        self.look()
        if len(self.done) != self._num_told:  # others look too, and do not tell
            self._tell()
        sys.stdout.flush()
        command = [sys.executable, "-m", "optim_hydra.cli", "report", str(self.folder)]
        subprocess.run(command, check=False)  # noqa: S603 - our own command

    def _follow(self) -> None:
        while not self._ended.wait(2.0):
            if self.look():
                self._tell()

    def _tell(self) -> None:
        log.info("sweep: %s", self.line())
        self._num_told = len(self.done)

    def _end_interrupted(self) -> None:
        """Record the end of a job of this process that an interrupt has stopped."""
        for path in job_files(self.folder):
            if path in self.done:
                continue
            with contextlib.suppress(RecordError):
                job = read_record(path, JobRecord)
                if job.is_of_this_process:
                    job.status, job.error = "failed", "it was interrupted"
                    write_record(path, job)


def watch_sweep(folder: Path, record: SweepRecord) -> None:
    """Follow a sweep until this process ends."""
    watch = SweepWatch(folder, record)
    _WATCHES.append(watch)
    watch.start()


def count_failed() -> int:
    """Return how many jobs of the sweeps that this process ran have no result."""
    for watch in _WATCHES:
        watch.look()
    return sum(watch.num_failed + watch.num_missing for watch in _WATCHES)


def _duration(seconds: float) -> str:
    if seconds < 90:  # noqa: PLR2004 - seconds read better up to here
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004
