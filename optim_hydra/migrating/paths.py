"""Migrate files and folders: each file by its kind, and what is left to decide."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from optim_hydra.dialects import SOURCES
from optim_hydra.errors import WrongObjectError, nearest
from optim_hydra.migrating.edits import Migrated, Question
from optim_hydra.migrating.files import (
    TextFile,
    UnreadableFileError,
    read_text,
    replace_text,
)
from optim_hydra.migrating.runs import NAMES, SUFFIXES, migrate_texts

__all__ = ["FileReport", "migrate_paths"]


@dataclass
class FileReport:
    """What was found in one file."""

    path: Path
    diff: str = ""
    """Of what was written, or would be; empty where nothing changes."""
    questions: list[Question] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """What is left to decide, one line each, with the place."""
        return [
            ": ".join(
                part
                for part in (
                    f"{self.path}:{question.line}" if question.line else str(self.path),
                    question.key,
                    question.why,
                )
                if part
            )
            for question in sorted(set(self.questions))
        ]


def migrate_paths(
    paths: Iterable[Path], *, source: str = "", check: bool = False
) -> list[FileReport]:
    """Rewrite the optimizer nodes and overrides of files, and of those in folders.

    Folders are searched for YAML, scripts, Makefiles, Python and Markdown; what is
    hidden (`.git`, `.hydra`) is left out, and a file that is named is read in any case.

    Args:
        paths: Of files and folders.
        source: Whose foreign keys to convert, one of `dialects.SOURCES`, or none.
        check: Change nothing.

    Returns:
        A report for each file in which something is to change or to decide.

    Raises:
        WrongObjectError: A path that does not exist, or an unknown source; nothing
            was read.

    """
    paths = list(paths)
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        msg = f"there is no {', no '.join(missing)}"
        raise WrongObjectError(msg)
    if source and source not in SOURCES:
        near = nearest(source, SOURCES) or f": there are {', '.join(SOURCES)}"
        msg = f"no source {source!r}{near}"
        raise WrongObjectError(msg)
    reports: list[FileReport] = []
    files = {path.resolve(): path for path in _files(paths, reports)}
    read = [_read_file(path) for path in files.values()]
    texts = [file for file in read if isinstance(file, TextFile)]
    migrated = iter(migrate_texts(texts, source))
    for file in read:
        if isinstance(file, TextFile):
            file = _finish(file, next(migrated), check=check)  # noqa: PLW2901
        reports.append(file)
    return [report for report in reports if report.diff or report.questions]


def _files(paths: Iterable[Path], unread: list[FileReport]) -> Iterator[Path]:
    def note(error: OSError) -> None:
        why = f"the folder can't be read: {error.strerror}"
        unread.append(FileReport(Path(error.filename), "", [Question(0, "", why)]))

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path, onerror=note):
            folders[:] = sorted(name for name in folders if _is_searched(name))
            found = (Path(folder) / name for name in sorted(names))
            yield from (file for file in found if _is_known(file) and file.is_file())


def _is_searched(folder: str) -> bool:
    return not folder.startswith(".") and folder not in ("__pycache__", "node_modules")


def _is_known(path: Path) -> bool:
    is_hidden = path.name.startswith(".")
    return not is_hidden and (path.suffix in SUFFIXES or path.name in NAMES)


def _read_file(path: Path) -> TextFile | FileReport:
    try:
        return read_text(path)
    except UnreadableFileError as error:
        return _left(path, error)


def _left(path: Path, error: UnreadableFileError) -> FileReport:
    return FileReport(path, "", [Question(0, "", f"{error}; it is left as it was")])


def _finish(file: TextFile, migrated: Migrated, *, check: bool) -> FileReport:
    """Write what one file becomes, unless it is only to be told."""
    result = migrated.result()
    if result == file.text:
        return FileReport(file.path, "", migrated.questions)
    try:
        if not check:
            replace_text(file, result)
    except UnreadableFileError as error:
        report = _left(file.path, error)
        report.questions += migrated.questions
        return report
    return FileReport(file.path, _diff(file, result), migrated.questions)


def _diff(file: TextFile, result: str) -> str:
    old, new = (text.splitlines(keepends=True) for text in (file.text, result))
    name = str(file.path)
    lines = difflib.unified_diff(old, new, name, name, n=1)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
