"""Rank the jobs of a sweep: over seeds, since one good seed proves nothing."""

from __future__ import annotations

import pandas as pd
from rich import box
from rich.table import Table

from optim_hydra.sweep.results import SweepResults

__all__ = ["leaderboard", "over_seeds", "seed_keys"]

_ROWS = 15


def seed_keys(swept: list[str]) -> list[str]:
    """Return the swept keys that are seeds: `seed`, `data.seed`."""
    return [key for key in swept if key.rpartition(".")[2] == "seed"]


def over_seeds(results: SweepResults) -> pd.DataFrame:
    """Return one row for each setting, the best first.

    Columns: the swept keys but seeds, then `mean` and `std` of the results that there
    are, `jobs`, and `failed`. `std` is that of a sample (n - 1), NaN for one job. A
    setting without a result comes last.
    """
    jobs = results.jobs
    keys = [key for key in results.swept if key not in seed_keys(results.swept)]
    grouped = jobs.assign(_one=0).groupby(keys or ["_one"], sort=False, dropna=False)
    table = grouped.agg(
        mean=("result", "mean"),
        std=("result", "std"),
        jobs=("job", "count"),
        failed=("status", lambda status: int((status == "failed").sum())),
    ).reset_index()
    table = table.sort_values(
        "mean",
        ascending=results.direction == "minimize",
        na_position="last",
        kind="stable",
    )
    return table.drop(columns="_one", errors="ignore").reset_index(drop=True)


def leaderboard(results: SweepResults) -> Table:
    """Return a table for the terminal."""
    ranked = over_seeds(results)
    word = "lowest" if results.direction == "minimize" else "highest"
    table = Table(box=box.SIMPLE, title=f"{results.title}, {word} first")
    seeds = bool(seed_keys(results.swept))
    keys = [key for key in ranked.columns if key in results.swept]
    shown = [*keys, "mean" if seeds else "result", *(["std"] if seeds else [])]
    for name in [*shown, "jobs", "failed"]:
        is_number = name not in keys
        table.add_column(name, justify="right" if is_number else "left")
    for row in ranked.head(_ROWS).to_dict("records"):
        numbers = [_text(row["mean"]), *([_text(row["std"])] if seeds else [])]
        counts = [str(row["jobs"]), str(row["failed"] or "")]
        table.add_row(*(str(row[key]) for key in keys), *numbers, *counts)
    if len(ranked) > _ROWS:
        table.caption = f"and {len(ranked) - _ROWS} more settings"
    return table


def _text(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.4g}"
