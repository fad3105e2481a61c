"""Rewrite the files of a project, and print what was done and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from optim_hydra.migrating.paths import migrate_paths

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
    questions = [line for report in reports for line in report.lines]
    if questions:
        typer.echo(f"{len(questions)} to decide:", err=True)
        for line in questions:
            typer.echo(f"  {line}", err=True)
    verb = "would change" if check else "changed"
    files = "1 file" if len(changed) == 1 else f"{len(changed)} files"
    typer.echo(f"{verb} {files}", err=True)
    return not questions and not (check and changed)
