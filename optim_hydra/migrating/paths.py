"""Migrate files and folders: each file by its kind, and what is left to decide."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator
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
from optim_hydra.migrating.markdown import migrate_markdown
from optim_hydra.migrating.python_code import migrate_python
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.yaml_texts import migrate_yaml

__all__ = ["FileReport", "migrate_paths"]

_YAML = (".yaml", ".yml")
_KINDS: dict[str, Callable[[str, str], Migrated]] = {
    **dict.fromkeys(
        (".sh", ".bash", ".zsh", ".sbatch", ".slurm", ".mk"), migrate_script
    ),
    **dict.fromkeys((".md", ".markdown"), migrate_markdown),
    ".py": migrate_python,
}
_NAMES = ("Makefile", "makefile", "GNUmakefile")


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
    reports += [_migrate_file(path, source, check=check) for path in files.values()]
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
    kinds = (*_YAML, *_KINDS)
    return not is_hidden and (path.suffix in kinds or path.name in _NAMES)


def _migrate_file(path: Path, source: str, *, check: bool) -> FileReport:
    report = FileReport(path)
    try:
        file = read_text(path)
        migrated = _migrate_text(file, source)
        report.questions += migrated.questions
        result = migrated.result()
        if result != file.text:
            if not check:
                replace_text(file, result)
            report.diff = _diff(file, result)
    except UnreadableFileError as error:
        report.questions.append(Question(0, "", f"{error}; it is left as it was"))
    return report


def _migrate_text(file: TextFile, source: str) -> Migrated:
    if file.path.suffix in _YAML:
        return migrate_yaml(file.text, file.path.absolute(), source)
    return _KINDS.get(file.path.suffix, migrate_script)(file.text, source)


def _diff(file: TextFile, result: str) -> str:
    old, new = (text.splitlines(keepends=True) for text in (file.text, result))
    name = str(file.path)
    lines = difflib.unified_diff(old, new, name, name, n=1)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
