"""Show the settings of a sweep in the terminal, the best first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optim_hydra.sweep.page_data import is_set, shown
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import Setting, over_seeds, setting_keys

__all__ = ["leaderboard"]

_ROWS = 15
_READABLE = 16
"""Letters of a line that a longer key or value has at least."""
_WIDEST = 100_000


def leaderboard(results: SweepResults, console: Console) -> Table:
    """Return one row for each setting: mean and spread over its seeds.

    Keys that the console has no place for are left out: those first that the best
    setting lacks, then those without which the rows are told apart as well.
    """
    settings = over_seeds(results)
    rows = [
        [shown(value) if is_set(value) else "" for value in setting.values]
        for setting in settings[:_ROWS]
    ]
    kept = list(range(len(setting_keys(results.swept))))
    table = _table(results, settings, rows, kept)
    while len(kept) > 1 and _fewest(table, console) > console.width:
        kept.remove(_least_needed(rows, kept))
        table = _table(results, settings, rows, kept)
    for column in table.columns:
        column.max_width = None
    return table


def _least_needed(rows: Sequence[Sequence[str]], kept: Sequence[int]) -> int:
    """Return the key that the rows are told apart without, of several the last."""

    def use(place: int) -> tuple[bool, int, int, int]:
        others = {tuple(row[key] for key in kept if key != place) for row in rows}
        num_values = len({row[place] for row in rows})
        return bool(rows[0][place]), -len(others), num_values, -place

    return min(kept, key=use)


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
    return f"and {' and '.join(texts)} in report.html" if texts else None


def _text(value: float) -> str:
    return "" if math.isnan(value) else shown(value)
