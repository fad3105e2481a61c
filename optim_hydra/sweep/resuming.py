"""Start the command of a sweep again, for the jobs that it has no result of."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.records import SWEEP, RecordError, SweepRecord, read_record

__all__ = ["resume_sweep"]


def resume_sweep(folder: Path, overrides: Sequence[str] = ()) -> int:
    """Run what is missing or failed, into the same folder, and return the exit status.

    Jobs with a result are not run again: they return it. They are told by number and
    overrides, so a sweeper that draws at random needs a fixed seed.

    Raises:
        WrongObjectError: The folder has no record of its command.

    """
    try:
        record = read_record(folder / SWEEP, SweepRecord)
    except RecordError as error:
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


def _quoted(path: Path) -> str:
    """Quote a path for Hydra's grammar, where some characters mean something."""
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
