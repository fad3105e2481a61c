"""Show the settings of a sweep in the terminal, the best first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optim_hydra.sweep.page_data import shown
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import Setting, over_seeds, setting_keys

__all__ = ["leaderboard"]

_ROWS = 15
_READABLE = 16
"""Letters of a line that a longer key or value has at least."""
_WIDEST = 100_000


def leaderboard(results: SweepResults, console: Console) -> Table:
    """Return one row for each setting: mean and spread over its seeds.

    Keys that the console has no place for are left out, those first that tell least of
    the rows apart.
    """
    settings = over_seeds(results)
    keys = setting_keys(results.swept)
    rows = [[shown(value) for value in each.values] for each in settings[:_ROWS]]
    told = [len(set(column)) for column in zip(*rows, strict=True)]
    ranked = sorted(range(len(told)), key=lambda place: -told[place])
    kept = list(range(len(keys)))
    table = _table(results, settings, rows, kept)
    while len(kept) > 1 and _fewest(table, console) > console.width:
        kept = sorted(ranked[: len(kept) - 1])
        table = _table(results, settings, rows, kept)
    for column in table.columns:
        column.max_width = None
    return table


def _fewest(table: Table, console: Console) -> int:
    """Return the letters that a line of the table has at least."""
    return console.measure(table, options=console.options.update(width=_WIDEST)).minimum


def _table(
    results: SweepResults,
    settings: Sequence[Setting],
    rows: Sequence[Sequence[str]],
    kept: Sequence[int],
) -> Table:
    """Return the table with some of the keys, each as narrow as can be read."""
    keys = setting_keys(results.swept)
    has_seeds = keys != results.swept
    word = "lowest" if results.direction == "minimize" else "highest"
    # As Text, since what users wrote may look like the markup of rich.
    title = Text(f"{results.title}, {word} first")
    table = Table(box=box.SIMPLE, title=title)
    for place in kept:
        texts = [keys[place], *(row[place] for row in rows)]
        width = min(max(map(cell_len, texts)), _READABLE)
        heading = Text(keys[place])
        table.add_column(heading, overflow="fold", min_width=width, max_width=width)
    for name in ("mean", "std", "seeds") if has_seeds else ("result",):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("failed", justify="right", no_wrap=True)
    for setting, row in zip(settings, rows, strict=False):
        numbers = [_text(setting.mean)]
        if has_seeds:
            numbers += [_text(setting.std), str(setting.num_results)]
        failed = str(setting.num_failed or "")
        table.add_row(*(Text(row[place]) for place in kept), *numbers, failed)
    table.caption = _rest(len(settings) - len(rows), len(keys) - len(kept))
    return table


def _rest(num_settings: int, num_keys: int) -> str | None:
    texts = [
        f"{num} more {word}{'' if num == 1 else 's'}"
        for num, word in ((num_settings, "setting"), (num_keys, "key"))
        if num > 0
    ]
    return f"and {', '.join(texts)} in report.html" if texts else None


def _text(value: float) -> str:
    return "" if math.isnan(value) else shown(value)
