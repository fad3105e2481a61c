"""Own `log_metrics`: one row a step in the `metrics.csv` of a job's folder."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.plain_results import plain_number

__all__ = ["METRICS", "log_metrics"]

METRICS = "metrics.csv"
_STEP = "step"


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
        ResultError: A value is no number.
        WrongObjectError: There is no Hydra job, and no folder was given.

    Example:
        >>> import tempfile, torch
        >>> folder = tempfile.mkdtemp()
        >>> log_metrics(1, {"loss": torch.tensor(0.5), "lr.actor": 1e-3}, folder=folder)
        >>> print(Path(folder, "metrics.csv").read_text().strip())
        step,loss,lr.actor
        1,0.5,0.001

    """
    path = (_job_folder() if folder is None else Path(folder)) / METRICS
    row: dict[str, float | str] = {_STEP: step}
    for name, value in values.items():
        row[name] = "" if value is None else plain_number(value, name)
    columns = _columns_of(path)
    added = [name for name in row if name not in columns]
    if columns and added:
        _widen(path, added)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [*columns, *added], restval="")
        if not columns:
            writer.writeheader()
        writer.writerow(row)


def _job_folder() -> Path:
    if not HydraConfig.initialized():
        msg = "no Hydra job runs here: say where to log, log_metrics(..., folder=...)"
        raise WrongObjectError(msg)
    return Path(HydraConfig.get().runtime.output_dir)


def _columns_of(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return next(csv.reader(file), [])


def _widen(path: Path, added: list[str]) -> None:
    """Write the rows anew with more columns, and put them in the file's place."""
    aside = path.with_suffix(".partial")
    with path.open(newline="") as old, aside.open("w", newline="") as new:
        rows = csv.reader(old)
        writer = csv.writer(new)
        writer.writerow([*next(rows), *added])
        writer.writerows([*row, *[""] * len(added)] for row in rows)
    aside.replace(path)
