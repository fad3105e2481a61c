"""Own `optim-hydra list`: the optimizers that are installed, package by package."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from optim_hydra.cli.catalogue import MODULES, Package, catalogue, names_package, quiet
from optim_hydra.cli.describing import needs_of, starting_node, summary_of, tried
from optim_hydra.errors import WrongObjectError, nearest
from optim_hydra.state_memory import measure_state

__all__ = ["Row", "list_optimizers"]

_WIDTHS = {"needs": 22}


@dataclass(frozen=True)
class Row:
    """What is said of one class."""

    impl: str
    name: str
    bytes_per_parameter: float | None
    """Of state, for a float32 matrix of 256 x 256; None where it is not known."""
    needs: dict[str, str]
    summary: str


def list_optimizers(pattern: str, console: Console, *, as_json: bool) -> None:
    """Print the classes that match a pattern.

    Raises:
        WrongObjectError: None does.

    """
    packages = catalogue(pattern)
    rows = {package.impl: rows_of(package) for package in packages}
    if not any(rows.values()) and not any(p.failure for p in packages):
        msg = f"no optimizer here matches {pattern!r}{_hint(pattern, packages)}"
        raise WrongObjectError(msg)
    if as_json:
        data = {
            "optimizers": [asdict(row) for own in rows.values() for row in own],
            "failed": {p.impl: p.failure for p in packages if p.failure},
            "not_installed": {p.impl: p.install for p in packages if p.install},
        }
        console.out(json.dumps(data, indent=2), highlight=False)
        return
    for package in packages:
        if package.failure:
            text = f"{package.impl} {package.version} fails while it is imported:"
            console.print(Text(f"{text} {package.failure}"), soft_wrap=True)
        elif rows[package.impl]:
            console.print(Text(f"{package.impl} {package.version}", style="bold"))
            console.print(_table(rows[package.impl]))
    missing = [p.install for p in packages if p.install]
    if missing:
        console.print(Text(f"not installed: {', '.join(missing)}"), soft_wrap=True)


def rows_of(package: Package) -> list[Row]:
    """Describe the classes of a package."""
    rows = []
    for name, cls in package.classes.items():
        with quiet():
            optimizer, _ = tried(starting_node(cls, package.impl, name))
            memory = None if optimizer is None else measure_state(optimizer)
        each = None if memory is None else memory.per_parameter
        rows.append(Row(package.impl, name, each, needs_of(cls), summary_of(cls)))
    return rows


def _hint(pattern: str, packages: list[Package]) -> str:
    """Say what to type instead of a pattern that matches nothing."""
    missing = [p.install for p in packages if p.install]
    named = [
        p.install for p in packages if p.install and names_package(pattern, p.impl)
    ]
    if named or (missing and len(missing) == len(packages)):
        return f": pip install {' '.join(named or missing)}"
    last = pattern.rpartition(".")[2].strip("*?")
    names = [name for package in packages for name in [package.impl, *package.names]]
    places = ", ".join(package.impl for package in packages) or ", ".join(MODULES)
    return nearest(last, names) or f": looked in {places}"


def _table(rows: list[Row]) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    columns = {
        "class": [row.name for row in rows],
        "bytes": [_bytes(row.bytes_per_parameter) for row in rows],
        "needs": [", ".join(row.needs) for row in rows],
        "what it is": [row.summary for row in rows],
    }
    kept = {title: cells for title, cells in columns.items() if any(cells)}
    for title in kept:
        table.add_column(
            title,
            overflow="fold",
            max_width=_WIDTHS.get(title),
            no_wrap=title == "class",  # a name that is cut in two can't be copied
            justify="right" if title == "bytes" else "left",
        )
    for cells in zip(*kept.values(), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _bytes(each: float | None) -> str:
    return "" if each is None else f"{each:.3g}"
