"""What `optim_hydra.main` does around each job of a sweep."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from optim_hydra.sweep.plain_results import ResultError, is_finite, plain_result
from optim_hydra.sweep.records import JobRecord
from optim_hydra.sweep.resumed import finished_before, report_options

__all__ = ["done_before", "exits_as_failures", "sent_back"]

log = logging.getLogger(__name__)


def _config() -> DictConfig | None:
    """Return the config of the sweep's job that runs here, `hydra` alone."""
    if not HydraConfig.initialized():
        return None
    config: Any = HydraConfig.instance().cfg
    is_sweep = config is not None and config.hydra.mode == RunMode.MULTIRUN
    return config if is_sweep else None


def done_before() -> JobRecord | None:
    """Return the record of a job that a resumed sweep has the result of."""
    config = _config()
    record = None if config is None else finished_before(config)
    if record is not None:
        log.info("job %d was done before: %s", record.job, record.result)
    return record


def sent_back(result: Any) -> Any:
    """Return what a job of a sweep sends back: tensors of one element as floats.

    Raises:
        ResultError: A tensor has several elements; or, where the sweep is reported, a
            result is NaN or infinite, so that a sweeper does not take it for a winner.

    """
    config = _config()
    if config is None:
        return result
    is_reported = report_options(config) is not None
    has_tensor = callable(getattr(result, "item", None))
    if not (is_reported or has_tensor):
        return result
    plain = plain_result(result)
    if is_reported and not is_finite(plain):
        msg = f"the job returned {plain}"
        raise ResultError(msg)
    return plain


@contextmanager
def exits_as_failures() -> Iterator[None]:
    """Let a job of a reported sweep that leaves the program fail instead.

    It would end the sweep, and with the status 0 if it says so.

    Raises:
        ResultError: The job called `sys.exit`.

    """
    try:
        yield
    except SystemExit as left:
        config = _config()
        if config is None or report_options(config) is None:
            raise
        msg = f"the job left the program, sys.exit({left.code!r})"
        raise ResultError(msg) from left
