"""Build, train and probe every public optimizer class that is installed.

python benchmarks/zoo.py [--refused] [--json PATH] [IMPL ...]

Each class is built from one config node and trained on a tiny model in the loop that
it asks for, or it is refused before it is called. Then one argument after another is
set, and looked for in what was built. The peer, beside it, is a fixed rule
(`fixed_rule.py`). Each package has a process of its own and each class one more. A run
of all packages writes its tables into README.md. Packages that are not installed are
left out; those of the table: pip install -c constraints.txt -e ".[dev]" adam-mini
apollo-torch came-pytorch dadaptation einops galore-torch heavyball kron-torch
lomo-optim madgrad muon-optimizer torch-optimi torch-optimizer
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID, TimeElapsedColumn
from rich.table import Table
from zoo_catalogue import IMPLS
from zoo_table import HEADINGS, PackageRow, markdown, refusals, write_between_marks
from zoo_trials import Found

HERE = Path(__file__).parent
JOBS = 2


def run_package(impl: str, progress: Progress, task: TaskID) -> PackageRow:
    """Run one package in a process of its own, and follow it class by class."""
    row = PackageRow(impl)
    command = [sys.executable, str(HERE / "zoo_package.py"), impl]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        for line in process.stdout or ():
            said = json.loads(line)
            if "impl" in said:
                row.version = said.get("version", "")
                row.failure = said.get("failure", "")
                progress.update(task, total=len(said.get("names", ())))
            else:
                row.found.append(Found(**said))
                progress.advance(task)
    if process.returncode and not row.failure:
        row.failure = f"its process ended with exit code {process.returncode}"
    return row


def run_all(impls: Iterable[str], console: Console) -> list[PackageRow]:
    """Run packages, two at a time."""
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
        ThreadPoolExecutor(JOBS) as pool,
    ):
        jobs = [
            pool.submit(run_package, impl, progress, progress.add_task(impl))
            for impl in impls
        ]
        return [job.result() for job in jobs]


def show(rows: list[PackageRow], console: Console, *, with_refused: bool) -> None:
    """Print the figures, and everything that went wrong."""
    table = Table(*HEADINGS, box=None)
    for row in rows:
        cells = map(str, row.counts())
        table.add_row(row.impl, row.version, *([row.failure] if row.failure else cells))
    console.print(table)
    for row in rows:
        for each in row.found:
            wrong = each.broken or ("does not learn" if not each.trained else "")
            if wrong and not each.refused:
                console.print(f"{row.impl}.{each.name}: {wrong}", markup=False)
            for error in each.raw:
                console.print(f"{row.impl}.{each.name}: {error}", markup=False)
            if each.lost:
                lost = ", ".join(each.lost)
                console.print(f"{row.impl}.{each.name} loses {lost}", markup=False)
    if with_refused:
        for path, text in refusals(rows):
            console.print(f"{path}: {text}", markup=False)


def main() -> None:
    """Read the command line, run, show and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("impls", nargs="*", metavar="IMPL", help="packages, not all")
    parser.add_argument(
        "--refused", action="store_true", help="say why, class by class"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write results here")
    options = parser.parse_args()
    console = Console()
    there = [i for i in IMPLS if importlib.util.find_spec(i.partition(".")[0])]
    rows = run_all(options.impls or there, console)
    show(rows, console, with_refused=options.refused)
    if options.json is not None:
        data = [dataclasses.asdict(row) for row in rows]
        options.json.write_text(json.dumps(data, indent=2) + "\n")
    if not options.impls:
        write_between_marks(HERE.parent / "README.md", markdown(rows))


if __name__ == "__main__":
    main()
