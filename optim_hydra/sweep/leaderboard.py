"""Show the settings of a sweep in the terminal, the best first."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table
from rich.text import Text

from optim_hydra.sweep.page_data import shown
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import over_seeds, setting_keys

__all__ = ["leaderboard"]

_ROWS = 15


def leaderboard(results: SweepResults) -> Table:
    """Return one row for each setting: mean and spread over its seeds."""
    settings = over_seeds(results)
    keys = setting_keys(results.swept)
    has_seeds = keys != results.swept
    word = "lowest" if results.direction == "minimize" else "highest"
    # As Text, since what users wrote may look like the markup of rich.
    heading = Text(f"{results.title}, {word} first")
    table = Table(box=box.SIMPLE, title=heading)
    for key in keys:
        table.add_column(Text(key), overflow="fold")
    for title in ("mean", "std", "seeds") if has_seeds else ("result",):
        table.add_column(title, justify="right")
    table.add_column("failed", justify="right")
    for setting in settings[:_ROWS]:
        numbers = [_text(setting.mean)]
        if has_seeds:
            numbers += [_text(setting.std), str(setting.num_results)]
        failed = str(setting.num_failed or "")
        values = [Text(shown(value)) for value in setting.values]
        table.add_row(*values, *numbers, failed)
    more = len(settings) - _ROWS
    if more > 0:
        table.caption = f"and {more} more setting{'' if more == 1 else 's'}"
    return table


def _text(value: float) -> str:
    return "" if math.isnan(value) else shown(value)
