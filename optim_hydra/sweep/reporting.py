"""Write and print the report of sweeps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from optim_hydra.sweep.collect import collect
from optim_hydra.sweep.leaderboard import leaderboard
from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.results import SweepResults

__all__ = ["report_sweep"]

log = logging.getLogger(__name__)


def report_sweep(
    folders: Sequence[Path],
    output: Path | None = None,
    *,
    direction: str | None = None,
    metric: str | None = None,
) -> SweepResults:
    """Write results.csv, results.parquet and report.html, and print the leaderboard.

    Args:
        folders: Of the sweeps, or with sweeps in them.
        output: Where to write; None: into the first folder.
        direction: minimize or maximize; None: as the sweep was started.
        metric: What ranks the jobs; None: as the sweep was started.

    Raises:
        WrongObjectError: A folder has no jobs.

    """
    folders = [folder.absolute() for folder in folders]
    results = collect(folders, direction=direction, metric=metric)
    place = output or folders[0]
    place.mkdir(parents=True, exist_ok=True)
    results.jobs.to_csv(place / "results.csv", index=False)
    results.jobs.to_parquet(place / "results.parquet", index=False)
    write_page(results, place / "report.html")
    console = Console()
    console.print(leaderboard(results, console))
    console.print(_summary(results), highlight=False)
    page = Text(f"report: {place / 'report.html'}")
    console.print(page, highlight=False, soft_wrap=True)
    return results


def _summary(results: SweepResults) -> str:
    counts = results.jobs["status"].value_counts()
    total = len(results.jobs)
    texts = [f"{counts[word]} {word}" for word in counts.index if word != "completed"]
    done = counts.get("completed", 0)
    return ", ".join([f"{done} of {total} jobs completed", *texts])
