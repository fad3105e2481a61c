"""Own `SweepResults`: what the jobs of one or several sweeps did, as tables."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

__all__ = ["SweepResults"]


@dataclass(frozen=True)
class SweepResults:
    """Tables of jobs and of their curves."""

    title: str
    direction: str
    """minimize or maximize."""
    jobs: pd.DataFrame
    """One row a job: job, status, result, seconds, error, folder, command, same_as,
    then each swept key, each optimizer node, and `last.NAME` of each metric."""
    curves: pd.DataFrame
    """Columns job, metric, step, value."""
    swept: list[str]
    """Columns of `jobs` that are swept keys."""
    nodes: list[str]
    """Columns of `jobs` that are optimizer nodes."""
