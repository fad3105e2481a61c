"""Report sweeps of many jobs from their folders: the time, and the page's size.

Each job has a record, and logged two metrics a hundred times.

python benchmarks/report_many_jobs.py [--quick] [--json PATH]
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import tempfile
import time
from pathlib import Path

from paired_timing import save
from rich.console import Console
from rich.table import Table

from optim_hydra.sweep.collect import collect
from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.records import JOB, SWEEP, JobRecord, SweepRecord, write_record

NUM_STEPS, NUM_SEEDS = 100, 5


@dataclasses.dataclass(frozen=True)
class Result:
    """What the report of one sweep takes."""

    jobs: int
    collect_s: float
    """From the folders to tables."""
    tables_s: float
    """Tables to results.csv and results.parquet."""
    page_s: float
    page_mb: float


def make_sweep(folder: Path, num_jobs: int) -> None:
    """Write what jobs leave in their folders."""
    command = ["python", "train.py", "-m"]
    sweep = SweepRecord(command, str(folder), "minimize", None, f"{num_jobs:,} jobs")
    write_record(folder / SWEEP, sweep)
    for number in range(num_jobs):
        place = folder / str(number)
        place.mkdir()
        lr = 10.0 ** (number // NUM_SEEDS % 50 / 10 - 5)
        node = {"class": "torch.optim.adamw.AdamW", "arguments": {"lr": lr}}
        record = JobRecord(
            number,
            [f"optim.lr={lr}", f"seed={number % NUM_SEEDS}", f"width={number % 7}"],
            status="completed",
            result=lr + number % NUM_SEEDS,
            nodes={"optim": {"classes": [node]}},
            config_hash=str(number),
        )
        write_record(place / JOB, record)
        rows = [f"{k},{lr + 1 / (k + 1)},{lr}\n" for k in range(NUM_STEPS)]
        (place / "metrics.csv").write_text("step,loss,lr.optim\n" + "".join(rows))


def measure(num_jobs: int) -> Result:
    """Report a sweep of so many jobs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_sweep(folder, num_jobs)
        times = [time.perf_counter()]
        results = collect([folder])
        times.append(time.perf_counter())
        results.jobs.to_csv(folder / "results.csv", index=False)
        results.jobs.to_parquet(folder / "results.parquet", index=False)
        times.append(time.perf_counter())
        write_page(results, folder / "report.html")
        times.append(time.perf_counter())
        size = (folder / "report.html").stat().st_size
    spent = [end - start for start, end in itertools.pairwise(times)]
    return Result(num_jobs, *spent, page_mb=size / 1e6)


def show(results: list[Result]) -> None:
    """Print a table."""
    table = Table(box=None)
    for heading in ("jobs", "collect, s", "tables, s", "page, s", "page, MB"):
        table.add_column(heading, justify="right")
    for row in results:
        numbers = (row.collect_s, row.tables_s, row.page_s, row.page_mb)
        table.add_row(f"{row.jobs:,}", *(f"{number:.2f}" for number in numbers))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few jobs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write results here")
    options = parser.parse_args()
    measure(10)  # imports and caches are not part of what is measured
    found = [measure(n) for n in ((20, 40) if options.quick else (1_000, 10_000))]
    show(found)
    if options.json is not None:
        save(options.json, is_quick=options.quick, results=found)
