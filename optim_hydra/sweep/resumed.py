"""Tell whether a job of a resumed sweep has its result already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from optim_hydra.sweep.records import (
    JOB,
    SWEEP,
    JobRecord,
    RecordError,
    SweepRecord,
    read_record,
)

__all__ = ["finished_before", "report_options", "sweep_name"]

_TARGET = "optim_hydra.sweep.callback.SweepReport"


def report_options(config: DictConfig) -> dict[str, Any] | None:
    """Return what the config says of the sweep report, None where it has none."""
    callbacks = OmegaConf.select(config, "hydra.callbacks") or {}
    for each in callbacks.values():
        if isinstance(each, DictConfig) and each.get("_target_") == _TARGET:
            return {str(key): value for key, value in each.items()}
    return None


def finished_before(config: DictConfig) -> JobRecord | None:
    """Return the record of a job that a resumed sweep need not run again.

    Args:
        config: The job's whole config, `hydra` included.

    """
    options = report_options(config)
    if options is None or not options.get("resume"):
        return None
    try:
        path = Path(config.hydra.runtime.output_dir) / JOB
        record = read_record(path, JobRecord)
    except RecordError:
        return None
    overrides: Any = OmegaConf.to_container(config.hydra.overrides.task)
    is_same = record.overrides == list(map(str, overrides))
    is_same &= record.sweep in ("", sweep_name(config))
    return record if is_same and record.status == "completed" else None


def sweep_name(config: DictConfig) -> str:
    """Return the name of the sweep that a job is of, nothing if it can't be read."""
    try:
        return read_record(Path(config.hydra.sweep.dir) / SWEEP, SweepRecord).name
    except RecordError:
        return ""
