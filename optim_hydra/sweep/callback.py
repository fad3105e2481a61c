"""Own the Hydra callback that records each job of a sweep and reports at its end.

Chosen by `+sweep=...`, `hydra/callbacks=sweep_report`, or in the primary config:
`defaults: [override /hydra/callbacks: sweep_report]`.
"""

from __future__ import annotations

import logging
import time
import traceback
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from optim_hydra.errors import ConfigError, OptimHydraError, Problem
from optim_hydra.journal import JOURNAL
from optim_hydra.sweep.folder_lock import claim
from optim_hydra.sweep.metrics import METRICS
from optim_hydra.sweep.nodes import config_hash, resolved_nodes
from optim_hydra.sweep.plain_results import ResultError, is_finite, plain_result
from optim_hydra.sweep.planned_jobs import planned_jobs, typed_command
from optim_hydra.sweep.progress import watch_sweep
from optim_hydra.sweep.records import (
    JOB,
    SWEEP,
    JobRecord,
    RecordError,
    SweepRecord,
    read_record,
    write_record,
)
from optim_hydra.sweep.resumed import finished_before, sweep_name

__all__ = ["SweepReport"]

log = logging.getLogger(__name__)
DIRECTIONS = ("minimize", "maximize")


class SweepReport(Callback):
    """Write `job.json` for each job, and results.csv, .parquet and report.html."""

    def __init__(
        self,
        direction: str = "minimize",
        metric: str | None = None,
        resume: bool = False,  # noqa: FBT002 - Hydra passes keywords
    ) -> None:
        """Take what the config says.

        Args:
            direction: Which results are better, minimize or maximize.
            metric: What ranks the jobs: a name in a returned mapping, or a logged
                metric, whose last value counts. None: the number that is returned.
            resume: Run only the jobs of `hydra.sweep.dir` that are missing or failed.

        Raises:
            ConfigError: There is no such direction.

        """
        if direction not in DIRECTIONS:
            what = f"{direction!r} is none of {', '.join(DIRECTIONS)}"
            key = "hydra.callbacks.sweep_report.direction"
            raise ConfigError([Problem(what, key, ConfigError)])
        self.direction, self.metric, self.resume = direction, metric, resume
        self._record: JobRecord | None = None

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Write `sweep.json` and begin to tell how far the sweep is."""
        folder = Path(config.hydra.sweep.dir).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        claim(folder)
        record = self._resumed(folder / SWEEP) or self._new(config)
        write_record(folder / SWEEP, record)
        watch_sweep(folder, record)

    def _resumed(self, path: Path) -> SweepRecord | None:
        """Return the record of the sweep that goes on, whose command stays."""
        try:
            return read_record(path, SweepRecord) if self.resume else None
        except RecordError:
            return None

    def _new(self, config: DictConfig) -> SweepRecord:
        command, cwd = typed_command()
        return SweepRecord(
            command=command,
            cwd=cwd,
            direction=self.direction,
            metric=self.metric,
            title=f"{config.hydra.job.name} {time.strftime('%Y-%m-%d %H:%M')}",
            jobs=planned_jobs(config),
        )

    def on_job_start(self, config: DictConfig, **_: Any) -> None:
        """Record that the job runs; a metrics file of an earlier attempt goes."""
        self._record = None
        if config.hydra.mode != RunMode.MULTIRUN or finished_before(config):
            return
        folder = Path(config.hydra.runtime.output_dir)
        (folder / METRICS).unlink(missing_ok=True)
        JOURNAL.clear()
        JOURNAL.is_describing = True
        overrides: Any = OmegaConf.to_container(config.hydra.overrides.task)
        self._record = JobRecord(
            job=int(config.hydra.job.num),
            overrides=list(map(str, overrides)),
            started=time.time(),
            sweep=sweep_name(config),
        )
        write_record(folder / JOB, self._record)

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **_: Any) -> None:
        """Record what came of the job."""
        record, JOURNAL.is_describing = self._record, False
        if record is None:
            return
        record.seconds = time.time() - record.started
        task = job_return.cfg
        if isinstance(task, DictConfig):
            record.nodes = resolved_nodes(task)
            record.config_hash = config_hash(task)
        error = _error_of(job_return)
        try:
            if error is None:
                record.result = plain_result(job_return.return_value)
        except ResultError as refused:
            error = refused
        if error is None and not is_finite(record.result):
            error = ResultError(f"the job returned {record.result}")
            record.result = None
        record.status = "completed" if error is None else "failed"
        if error is not None:
            record.error = error_text(error)
            # Hydra shows the trace of the first failed job only, after the last one.
            is_told = isinstance(error, OptimHydraError)
            trace = [record.error] if is_told else traceback.format_exception(error)
            log.error("job %d failed: %s", record.job, "".join(trace))
        write_record(Path(config.hydra.runtime.output_dir) / JOB, record)


def _error_of(job_return: JobReturn) -> Exception | None:
    if job_return.status == JobStatus.COMPLETED:
        return None
    try:
        _ = job_return.return_value  # raises what the job raised
    except Exception as error:  # noqa: BLE001 - whatever a job raises
        return error
    return None


def error_text(error: BaseException) -> str:
    """Return the exception's message, and those that it was raised from."""
    texts: list[str] = []
    found: BaseException | None = error
    while found is not None and len(texts) < 5:  # noqa: PLR2004 - enough to read
        texts.append(f"{type(found).__name__}: {_message(found)}")
        found = found.__cause__
    return "\nfrom ".join(texts)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception of the user's own
        return "its message can't be shown, since str() of it fails"
