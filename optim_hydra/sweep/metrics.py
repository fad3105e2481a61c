"""Own `log_metrics`: one row a step in the `metrics.csv` of a job's folder."""

from __future__ import annotations

import csv
import io
import math
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.plain_results import ResultError, plain_number

__all__ = ["METRICS", "log_metrics"]

METRICS = "metrics.csv"
_STEP = "step"


@dataclass
class _Last:
    """The file that was written last, so that each row need not look for it anew."""

    config: Any = None
    """The job's config, and the folder that it names."""
    folder: Path = Path()
    file: tuple[int, ...] = ()
    """Which file it is and its size as it was left, which another writer changes."""
    columns: list[str] = field(default_factory=list)


_LAST = _Last()
_LOCK = threading.Lock()


def log_metrics(
    step: int, values: Mapping[str, Any], *, folder: Path | str | None = None
) -> None:
    """Add a row to `metrics.csv`, which the report of a sweep draws as curves.

    A row is on disk when this returns. Names that start with `lr.` are drawn as
    learning rates. Each call may have other names: cells without a value are empty.

    Args:
        step: What the curves are drawn over, such as updates or samples.
        values: Name -> number, or a tensor of one element; None leaves a cell empty.
        folder: Where the file is. None: the output folder of the Hydra job.

    Raises:
        ResultError: A value is no number, or the step is not finite.
        WrongObjectError: There is no Hydra job, and no folder was given; a value is
            called `step`; or the values are no mapping.

    Example:
        >>> import tempfile, torch
        >>> folder = tempfile.mkdtemp()
        >>> log_metrics(1, {"loss": torch.tensor(0.5), "lr.actor": 1e-3}, folder=folder)
        >>> print(Path(folder, "metrics.csv").read_text().strip())
        step,loss,lr.actor
        1,0.5,0.001

    """
    given: object = values
    if not isinstance(given, Mapping):
        msg = f"the values are of type {type(given).__name__}, not name -> number"
        raise WrongObjectError(msg)
    if _STEP in values:
        msg = f"{_STEP!r} is the column of the steps: give the value another name"
        raise WrongObjectError(msg)
    row: dict[str, float | str] = {_STEP: _plain_step(step)}
    for name, value in values.items():
        row[name] = "" if value is None else plain_number(value, name)
    path = os.path.join(_job_folder() if folder is None else folder, METRICS)  # noqa: PTH118 - a Path takes as long as the row
    with _LOCK:
        _add(path, row)


def _add(path: str, row: Mapping[str, float | str]) -> None:
    columns = _columns_of(path)
    added = [name for name in row if name not in columns]
    if columns and added:
        _widen(Path(path), added)
    columns = [*columns, *added]
    cells: list[Any] = [row.get(name, "") for name in columns]
    lines: list[list[Any]] = [columns, cells] if columns == added else [cells]
    with open(path, "ab") as file:  # noqa: PTH123 - as above
        file.write(_text(lines))
        file.flush()
        _LAST.file = _seen(os.fstat(file.fileno()))
    _LAST.columns = columns


def _plain_step(step: Any) -> float:
    if isinstance(step, int):
        return step
    number = plain_number(step, _STEP)
    if not math.isfinite(number):
        msg = f"{_STEP} is {number}, where a finite number is due"
        raise ResultError(msg)
    return int(number) if number.is_integer() else number


def _job_folder() -> Path:
    if not HydraConfig.initialized():
        msg = "no Hydra job runs here: say where to log, log_metrics(..., folder=...)"
        raise WrongObjectError(msg)
    config = HydraConfig.instance().cfg
    if config is not _LAST.config:
        _LAST.folder = Path(HydraConfig.get().runtime.output_dir)
        _LAST.config = config
    return _LAST.folder


def _columns_of(path: str) -> list[str]:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except FileNotFoundError:
        return []
    if _seen(status) == _LAST.file:
        return _LAST.columns
    _drop_half_row(Path(path))
    with open(path, newline="", encoding="utf-8") as file:  # noqa: PTH123 - as above
        return next(csv.reader(file), [])


def _drop_half_row(path: Path) -> None:
    """Take away what a writer that was killed left of its last row."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)


def _seen(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size


def _text(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _widen(path: Path, added: list[str]) -> None:
    """Write the rows anew with more columns, and put them in the file's place."""
    aside = path.with_suffix(".partial")
    with (
        path.open(newline="", encoding="utf-8") as old,
        aside.open("w", newline="", encoding="utf-8") as new,
    ):
        rows = csv.reader(old)
        writer = csv.writer(new)
        writer.writerow([*next(rows), *added])
        writer.writerows([*row, *[""] * len(added)] for row in rows)
    aside.replace(path)
