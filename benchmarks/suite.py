"""Run all measurements of speed, and write the README's table.

That has the rows with a wanted ratio; all figures are kept as JSON beside this file.
Peers are measured where they are installed: pip install hydra-zen jsonargparse

python benchmarks/suite.py [--quick] [--json PATH] [SCRIPT...]
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from zoo_table import write_between_marks

HERE = Path(__file__).parent
MARKS = ("<!-- benchmarks/suite.py: -->", "<!-- :benchmarks/suite.py -->")
SCRIPTS: dict[str, tuple[str, ...]] = {
    "startup": (),
    "node_to_optimizer": (),
    "build_groups": (),
    "container_step": (),
    "implementations": (),
    "optimizer_state": (),
    "checkpoint_file": (),
    "step_in_backward": (),
    "sweep_overhead": ("local", "--jobs", "16", "--rounds", "3", "--steps", "200"),
}
HEADINGS = ("case", "over", "ratio", "middle half", "wanted")
Row = dict[str, Any]


def measure(script: str, *, is_quick: bool) -> dict[str, Any]:
    """Run a script in a process of its own, and return what it found."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "found.json")
        quick = ["--quick"] if is_quick else []
        command = [HERE / f"{script}.py", *quick, "--json", path, *SCRIPTS[script]]
        done = subprocess.run(  # noqa: S603 - our own programs
            [sys.executable, *command],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            msg = f"{script} failed: {done.stdout}{done.stderr}"
            raise RuntimeError(msg)
        found: dict[str, Any] = json.loads(path.read_text())
        return found


def cells(row: Row) -> list[str]:
    """Return the cells of a row."""
    spread = f"{row['low']:.3g} - {row['high']:.3g}"
    return [
        row["name"],
        row["against"],
        f"{row['ratio']:.3g}",
        spread,
        f"{row['wanted']:g}",
    ]


def markdown(rows: list[Row], about: str) -> str:
    """Return the table for the README, and what it was measured with."""
    lines = [HEADINGS, ["---", "---", "--:", "--:", "--:"], *map(cells, rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{about}\n\n{table}"


def machine() -> str:
    """Say what this is measured on."""
    return (
        f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, {os.cpu_count()} cores"
        f" ({platform.machine()}), no accelerator, one thread, Python"
        f" {platform.python_version()}, torch {torch.__version__.partition('+')[0]}:"
    )


def main() -> None:
    """Read the command line, run, show and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="names, not all")
    parser.add_argument("--quick", action="store_true", help="small cases, two rounds")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write results here")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110)
    found = {
        script: measure(script, is_quick=options.quick)
        for script in track(options.scripts or SCRIPTS, "measuring", transient=True)
    }
    results = [row for each in found.values() for row in each["results"]]
    rows = [row for row in results if row["wanted"] is not None]
    table = Table(*HEADINGS, box=None)
    for row in rows:
        table.add_row(*cells(row))
    console.print(table)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if not (options.scripts or options.quick):
        (HERE / "results.json").write_text(json.dumps(found, indent=2) + "\n")
        write_between_marks(HERE.parent / "README.md", markdown(rows, machine()), MARKS)


if __name__ == "__main__":
    main()
