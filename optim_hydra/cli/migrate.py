"""Rewrite the files of a project, and print what was done and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from optim_hydra.convert import convert_config
from optim_hydra.migrating.edits import value_text
from optim_hydra.migrating.flag_names import flag_key, flag_names
from optim_hydra.migrating.paths import migrate_paths
from optim_hydra.schema import OptimConfig

__all__ = ["migrate_files"]


def migrate_files(paths: Sequence[Path], source: str, *, check: bool) -> bool:
    """Migrate, and print a diff of each file; then what could not be decided.

    Returns:
        Whether nothing is left: nothing to decide and, with `check`, to change.

    """
    reports = migrate_paths(paths, source=source, check=check)
    changed = [report for report in reports if report.diff]
    for report in changed:
        typer.echo(report.diff, nl=False)
    if any(_has_flags(report.diff, source) for report in changed):
        typer.echo(
            f"without a flag {source} has its own: {_defaults(source)}", err=True
        )
    questions = [line for report in reports for line in report.lines]
    if questions:
        typer.echo(f"{len(questions)} to decide:", err=True)
        for line in questions:
            typer.echo(f"  {line}", err=True)
    verb = "would change" if check else "changed"
    files = "1 file" if len(changed) == 1 else f"{len(changed)} files"
    typer.echo(f"{verb} {files}", err=True)
    return not questions and not (check and changed)


def _has_flags(diff: str, source: str) -> bool:
    """Whether a diff takes flags of other libraries' programs out."""
    names = flag_names(source)
    taken = [line for line in diff.splitlines() if line[:1] == "-" != line[2:3]]
    words = (word.strip("\"',") for line in taken for word in line[1:].split())
    return any(flag_key(word, names) for word in words)


def _defaults(source: str) -> str:
    """Return, as a node to write, the defaults of another library that ours lack."""
    ours, theirs = OptimConfig().to_dict(), convert_config({}, source).to_dict()
    other = {key: value for key, value in theirs.items() if value != ours[key]}
    return f"optim: {value_text(other)}"
