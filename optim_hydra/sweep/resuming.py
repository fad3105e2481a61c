"""Start the command of a sweep again, for the jobs that it has no result of."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.records import (
    SWEEP,
    RecordError,
    SweepRecord,
    read_record,
    sweep_around,
)

__all__ = ["resume_sweep"]

_OF_JOBS = (
    "hydra.callbacks",
    "hydra/callbacks",
    "hydra.sweep.",
    "hydra.sweeper.params",
    "hydra/sweeper",
)


def resume_sweep(folder: Path, overrides: Sequence[str] = ()) -> int:
    """Run what is missing or failed, into the same folder, and return the exit status.

    Jobs with a result are not run again: they return it. They are told by number and
    overrides, so a sweeper that draws at random needs a fixed seed.

    Args:
        folder: Of the sweep.
        overrides: Of Hydra's own settings, such as `hydra.launcher.n_jobs=2`.

    Raises:
        WrongObjectError: The folder has no record of its command, or an override
            would make other jobs, which would take the place of those with a result.

    """
    changing = [text for text in overrides if _changes_jobs(text)]
    if changing:
        msg = (
            f"{', '.join(changing)} can change the jobs of {folder}, and replace"
            " their results: start a new sweep with it; resume takes settings of how"
            " they are launched, such as hydra.launcher.n_jobs=2"
        )
        raise WrongObjectError(msg)
    try:
        record = read_record(folder / SWEEP, SweepRecord)
    except RecordError as error:
        if around := sweep_around(folder):
            msg = f"{folder} is inside a sweep's folder: optim-hydra resume {around}"
            raise WrongObjectError(msg) from error
        msg = (
            f"{folder} has no record of its command ({SWEEP}): only sweeps with the"
            " callback sweep_report, such as -m +sweep=basic, can be resumed"
        )
        raise WrongObjectError(msg) from error
    command = [
        *record.command,
        f"hydra.sweep.dir={_quoted(folder.absolute())}",
        "hydra.callbacks.sweep_report.resume=true",
        *overrides,
    ]
    return subprocess.run(command, cwd=record.cwd, check=False).returncode  # noqa: S603 - the user's own command


def _changes_jobs(override: str) -> bool:
    """Whether jobs get another config, number or folder by it, or run once more."""
    key = override.lstrip("+~").partition("=")[0]
    return key.startswith(_OF_JOBS) or not key.startswith(("hydra.", "hydra/"))


def _quoted(path: Path) -> str:
    """Quote a path for Hydra's grammar, where some characters mean something."""
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
