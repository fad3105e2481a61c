"""Measure how much more memory a call needs while it runs, on Linux.

Each call runs in a fresh process and is compared with the bytes that it is about. What
counts is the process's resident memory, as the kernel sees it: tensors, Python objects
and what the allocator could not give back.
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import multiprocessing
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

__all__ = ["Peak", "PeakPair", "measure_peaks", "peak_table"]

Prepared = tuple[Callable[[], Any], int]


@dataclasses.dataclass(frozen=True)
class PeakPair:
    """Two calls that do the same, each of which is made in a process of its own."""

    name: str
    against: str
    """What `other` is."""
    ours: Callable[[], Prepared]
    """Makes the call and says how many bytes it is about; it can be pickled."""
    other: Callable[[], Prepared]


@dataclasses.dataclass(frozen=True)
class Peak:
    """Extra memory of both calls of a pair, as shares of the bytes they are about."""

    name: str
    against: str
    num_bytes: int
    ours_ratio: float
    other_ratio: float


def measure_peaks(pair: PeakPair) -> Peak:
    """Run each call of a pair once, in a fresh process."""
    ours, num_bytes = _in_fresh_process(pair.ours)
    other, _ = _in_fresh_process(pair.other)
    ratios = ours / num_bytes, other / num_bytes
    return Peak(pair.name, pair.against, num_bytes, *ratios)


def peak_table(peaks: list[Peak]) -> Table:
    """Show extra memory as shares of the bytes that a call is about."""
    table = Table("extra memory while it runs", "over", box=None)
    for heading in ("MiB that it is about", "x", "x of the other"):
        table.add_column(heading, justify="right")
    for peak in peaks:
        shares = (f"{peak.ours_ratio:.2f}", f"{peak.other_ratio:.2f}")
        size = f"{peak.num_bytes / 2**20:.0f}"
        table.add_row(peak.name, peak.against, size, *shares)
    return table


def _in_fresh_process(make: Callable[[], Prepared]) -> tuple[int, int]:
    if not sys.platform.startswith("linux"):
        msg = "peak memory is read from /proc, which only Linux has"
        raise RuntimeError(msg)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        return pool.submit(_extra_bytes, make).result()


def _extra_bytes(make: Callable[[], Prepared]) -> tuple[int, int]:
    """Return the highest resident memory during a call, less that before it."""
    torch.set_num_threads(1)
    call, num_bytes = make()
    gc.collect()
    # Freed memory that the allocator keeps would be used again without being seen.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is the present from now on
    before = _status("VmRSS")
    result = call()
    extra = _status("VmHWM") - before
    del result
    return extra, num_bytes


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        msg = f"/proc/self/status has no {field}"
        raise RuntimeError(msg)
    return 1024 * int(found[1])
