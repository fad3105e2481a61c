"""Time two ways of doing one thing side by side, and show the ratio.

Each round times both, the first one in turn, in CPU seconds of the calling thread, so
that other work on the machine disturbs little. Medians of the rounds are shown; a
ratio is the median of each round's own, and the middle half of these lies between
"from" and "to".
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from peak_memory import PeakPair, measure_peaks, peak_table
from rich.console import Console
from rich.table import Table

__all__ = ["Pair", "children_time", "run", "save"]


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two calls that do the same."""

    name: str
    against: str
    """What `other` is."""
    ours: Callable[[], object]
    other: Callable[[], object]
    rounds: int
    calls: int = 1
    """How often each is called in a round; what is shown is one call."""
    wanted: float | None = None
    """The ratio that the design asks for; such pairs are rows of the README."""
    clock: Callable[[], float] = time.thread_time
    """What tells the seconds spent; `children_time` where processes are started."""


@dataclasses.dataclass(frozen=True)
class Result:
    """Medians of one pair, in milliseconds."""

    name: str
    against: str
    ours_ms: float
    other_ms: float
    ratio: float
    low: float
    high: float
    """Between these two lies the middle half of the rounds' ratios."""
    rounds: int
    wanted: float | None


def children_time() -> float:
    """Return the CPU seconds of the processes that were started and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def run(
    description: str,
    make_pairs: Callable[[bool], Iterable[Pair]],
    make_peaks: Callable[[bool], Iterable[PeakPair]] | None = None,
) -> None:
    """Read the command line, time the pairs one after another and print a table.

    Args:
        description: The script's docstring.
        make_pairs: Yields the pairs; its argument is whether a smoke run will do.
        make_peaks: Yields, in the same way, what memory is measured of.

    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small cases, two rounds")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write results here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = []
    for pair in make_pairs(options.quick):
        rounds = 2 if options.quick else pair.rounds
        results.append(_measure(dataclasses.replace(pair, rounds=rounds)))
    peaks = [measure_peaks(pair) for pair in (make_peaks or _none)(options.quick)]
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(_table(results))
    if peaks:
        console.print(peak_table(peaks))
    if options.json is not None:
        save(options.json, is_quick=options.quick, results=results, peaks=peaks)


def save(path: Path, *, is_quick: bool, **found: Iterable[Any]) -> None:
    """Write results, dataclasses in lists, with what they were measured with."""
    report = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "is_quick": is_quick,
        **{
            name: [dataclasses.asdict(row) for row in rows]
            for name, rows in found.items()
        },
    }
    path.write_text(json.dumps(report, indent=2) + "\n")


def _none(_: bool) -> list[PeakPair]:
    return []


def _measure(pair: Pair) -> Result:
    ways = {"ours": pair.ours, "other": pair.other}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()  # imports and caches are not part of the comparison
    for number in range(pair.rounds):
        for name in sorted(ways, reverse=number % 2 == 1):
            times[name].append(_time(ways[name], pair.calls, pair.clock))
    ratios = [a / b for a, b in zip(times["ours"], times["other"], strict=True)]
    return Result(
        pair.name,
        pair.against,
        statistics.median(times["ours"]),
        statistics.median(times["other"]),
        statistics.median(ratios),
        *_middle_half(ratios),
        pair.rounds,
        pair.wanted,
    )


def _middle_half(ratios: list[float]) -> tuple[float, float]:
    first, _, third = statistics.quantiles(ratios, n=4, method="inclusive")
    return first, third


def _time(call: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    """Return the milliseconds of one call; freeing the last result is not timed."""
    if calls == 1:
        gc.collect()  # what an earlier one left
    start = clock()
    for _ in range(calls):
        result = call()
    spent = clock() - start
    del result
    return 1e3 * spent / calls


def _table(results: Iterable[Result]) -> Table:
    table = Table("case", "over", box=None)
    for heading in ("ms", "ms of the other", "ratio", "from", "to", "wanted"):
        table.add_column(heading, justify="right")
    for result in results:
        figures = (f"{result.ours_ms:.3g}", f"{result.other_ms:.3g}")
        ratios = [f"{each:.3f}" for each in (result.ratio, result.low, result.high)]
        wanted = "" if result.wanted is None else f"{result.wanted:g}"
        table.add_row(result.name, result.against, *figures, *ratios, wanted)
    return table
