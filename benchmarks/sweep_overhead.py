"""Time the jobs of real sweeps with the library, and with Hydra and torch alone.

The same training of about a second, by each launcher. Each round runs both sweeps, the
first one in turn; a ratio is the median of each round's own, with the lowest and the
highest. What the jobs share is the sweep without the program's own start and without
the report at the end, which are around it: its CPU seconds in all processes, which
other work on the machine disturbs less, and its time.

python benchmarks/sweep_overhead.py [--quick] [--json PATH] [--rounds N] [--jobs N]
    [--steps N] [LAUNCHER...]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from paired_timing import save
from rich.console import Console
from rich.progress import track
from rich.table import Table

SWEPT = Path(__file__).parent / "swept"
# What +sweep=... chooses, for the program without it.
LAUNCHERS = {
    "basic": ["hydra/launcher=basic"],
    "joblib": ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
    "submitit": ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=1440"],
    "ray": [
        "hydra/launcher=ray",
        "+hydra.launcher.ray.init.include_dashboard=false",
        "+hydra.launcher.ray.init.object_store_memory=null",
        "+hydra.launcher.ray.remote.num_cpus=1",
    ],
    # Against Hydra's own way of running jobs here.
    "local": ["hydra/launcher=basic"],
    "optuna": ["hydra/sweeper=optuna", "hydra.sweeper.n_jobs=1"],
}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Seconds of one sweep."""

    cpu: float
    """From the first job's start to the last one's end, over their number."""
    time: float
    """The same on the clock."""
    around: float
    """The rest: the program's start and, with the library, the report."""


@dataclasses.dataclass(frozen=True)
class Result:
    """Medians over the rounds, in milliseconds."""

    name: str
    against: str
    ours_ms: float
    other_ms: float
    ratio: float
    low: float
    high: float
    """The lowest and the highest of the rounds."""
    rounds: int
    wanted: float | None


def sweep(launcher: str, num_jobs: int, num_steps: int, *, is_ours: bool) -> Sweep:
    """Run one sweep in a process of its own."""
    program = "with_us.py" if is_ours else "without_us.py"
    chosen = [f"+sweep={launcher}"] if is_ours else LAUNCHERS[launcher]
    seeds = ",".join(map(str, range(num_jobs)))
    swept = f"seed={seeds}"
    if launcher == "optuna":
        swept = f"seed=choice({seeds})"
        chosen = [*chosen, f"hydra.sweeper.n_trials={num_jobs}"]
    with tempfile.TemporaryDirectory() as folder:
        place = [f"hydra.sweep.dir={folder}", f"num_steps={num_steps}"]
        started = time.perf_counter()
        result = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, SWEPT / program, "-m", *chosen, swept, *place],
            cwd=folder,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": f"{SWEPT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
                "RAY_USAGE_STATS_ENABLED": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        whole = time.perf_counter() - started
        if result.returncode:
            msg = f"{program} {chosen} failed: {result.stdout}{result.stderr}"
            raise RuntimeError(msg)
        counted = json.loads(Path(folder, "seconds.json").read_text())
    cpu, passed = counted["cpu"], counted["time"]
    return Sweep(cpu / num_jobs, passed / num_jobs, whole - passed)


def measure(name: str, rounds: int, num_jobs: int, num_steps: int) -> list[Result]:
    """Run pairs of sweeps; return what a job takes, and what is around the jobs."""
    pairs: list[tuple[Sweep, Sweep]] = []
    for number in track(range(rounds), name, transient=True):
        runs = {
            ours: sweep(name, num_jobs, num_steps, is_ours=ours)
            for ours in ((True, False) if number % 2 else (False, True))
        }
        pairs.append((runs[True], runs[False]))
    return [
        _result(name, "CPU of a job", [(a.cpu, b.cpu) for a, b in pairs]),
        _result(name, "time of a job", [(a.time, b.time) for a, b in pairs]),
        _result(name, "time around", [(a.around, b.around) for a, b in pairs]),
    ]


def _result(name: str, what: str, pairs: list[tuple[float, float]]) -> Result:
    ratios = [ours / other for ours, other in pairs]
    is_local = name == "local" and what == "time of a job"
    return Result(
        f"{name}, {what}",
        "Hydra's basic launcher" if name == "local" else "Hydra alone",
        1e3 * statistics.median(ours for ours, _ in pairs),
        1e3 * statistics.median(other for _, other in pairs),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        len(ratios),
        0.8 if is_local else None,
    )


def show(results: Iterable[Result]) -> None:
    """Print a table."""
    table = Table("sweep", box=None)
    for heading in ("ms", "ms without", "ratio", "from", "to", "rounds"):
        table.add_column(heading, justify="right")
    for row in results:
        times = (f"{row.ours_ms:,.0f}", f"{row.other_ms:,.0f}")
        ratios = [f"{ratio:.3f}" for ratio in (row.ratio, row.low, row.high)]
        table.add_row(row.name, *times, *ratios, str(row.rounds))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("launchers", nargs="*", metavar="LAUNCHER", default=[])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200, help="of each training")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write results here")
    options = parser.parse_args()
    size = (1, 2, 5) if options.quick else (options.rounds, options.jobs, options.steps)
    found = [
        result
        for name in options.launchers or LAUNCHERS
        for result in measure(name, *size)
    ]
    show(found)
    if options.json is not None:
        save(options.json, is_quick=options.quick, results=found)
