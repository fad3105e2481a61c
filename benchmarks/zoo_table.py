"""Write what became of the zoo as the README's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zoo_trials import Found

__all__ = ["PackageRow", "markdown", "refusals", "write_between_marks"]

MARKS = ("<!-- benchmarks/zoo.py: -->", "<!-- :benchmarks/zoo.py -->")
HEADINGS = (
    "package",
    "version",
    "classes",
    "built",
    "trained",
    "refused with a reason",
    "values lost",
    "fixed rule: built",
    "trained",
    "values lost",
)


@dataclass
class PackageRow:
    """What became of one package."""

    impl: str
    version: str = ""
    failure: str = ""
    """Why it could not be imported."""
    found: list[Found] = field(default_factory=list)

    def counts(self) -> list[int]:
        """Return the figures of its row, in the order of the headings."""
        found = self.found
        return [
            len(found),
            sum(each.built for each in found),
            sum(each.trained for each in found),
            sum(bool(each.refused) for each in found),
            sum(len(each.lost) for each in found),
            sum(each.fixed_built for each in found),
            sum(each.fixed_trained for each in found),
            sum(len(each.fixed_lost) for each in found),
        ]


def markdown(rows: Sequence[PackageRow]) -> str:
    """Return both tables: the figures, and, folded, why classes were refused."""
    lines = [_line(HEADINGS), _line(["---", "---", *["--:"] * 8])]
    there = [row for row in rows if not row.failure]
    for row in there:
        cells = map(str, row.counts())
        lines.append(_line([f"`{row.impl}`", row.version.partition("+")[0], *cells]))
    totals = [sum(each) for each in zip(*(r.counts() for r in there), strict=True)]
    lines.append(_line(["all", "", *map(str, totals)]))
    num_values = sum(each.values for row in there for each in row.found)
    num_raw = sum(len(each.raw) for row in there for each in row.found)
    said = f"Values set, one at a time: {num_values:,}. Errors at them that are not"
    lines += ["", f"{said} the library's: {num_raw}."]
    lines += ["", "<details><summary>Every class that is refused</summary>", ""]
    lines += [_line(["class", "what the error says"]), _line(["---", "---"])]
    lines += [_line([f"`{path}`", text]) for path, text in refusals(there)]
    return "\n".join([*lines, "", "</details>"])


def refusals(rows: Iterable[PackageRow]) -> list[tuple[str, str]]:
    """Return each refused class with the sentence of its error."""
    return [
        (f"{row.impl}.{each.name}", " ".join(each.refused.split()))
        for row in rows
        for each in row.found
        if each.refused
    ]


def write_between_marks(path: Path, text: str, marks: tuple[str, str] = MARKS) -> None:
    """Put text between the marks of a file."""
    before, _, rest = path.read_text().partition(marks[0])
    _, _, after = rest.partition(marks[1])
    path.write_text(f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
