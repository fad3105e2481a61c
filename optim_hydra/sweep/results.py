"""Own `SweepResults`: everything a report says about a sweep, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

__all__ = ["SweepResults"]


@dataclass(frozen=True, eq=False)
class SweepResults:
    """The jobs of a sweep, or of several merged sweeps, and what they logged."""

    title: str
    direction: Literal["minimize", "maximize"]
    """Which result is the best: the lowest or the highest."""
    jobs: pd.DataFrame
    """One row a job, with the columns

    - `job`, `status` (completed, failed, running, missing), `result` (NaN where there
      is none), `seconds`, `error`, `folder`, `command` (shell text that repeats the
      job), `same_as` (the job whose config is equal, or nothing),
    - one for each swept key, named by the key: empty where a job did not set it,
    - one for each optimizer node, such as `AdamW(lr=0.001)`, named by its key, and
      `optim (node)` where `optim` was swept,
    - `last.NAME`: the last value of each logged metric.
    """
    swept: list[str]
    """The swept keys, such as `optim@critic.optim` or `seed`."""
    nodes: list[str]
    """The columns of the optimizer nodes, such as `critic.optim`."""
    curves: pd.DataFrame
    """What was logged, a row a value: `job`, `metric`, `step`, `value`.

    A metric whose name starts with `lr.` is a learning rate.
    """
