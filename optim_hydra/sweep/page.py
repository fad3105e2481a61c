"""Write the page of a sweep: one file that needs no network."""

from __future__ import annotations

from pathlib import Path

from optim_hydra.sweep.results import SweepResults

__all__ = ["write_page"]


def write_page(results: SweepResults, path: Path) -> None:
    """Write a page with the table of jobs."""
    results.jobs.to_html(path, index=False, na_rep="")
