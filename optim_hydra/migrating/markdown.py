"""Migrate a Markdown page: the code in it, by its language; the prose stays."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import PurePath

from optim_hydra.foreign_keys import FOREIGN_KEYS
from optim_hydra.migrating.editors import WordsEditor
from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.flags import migrate_flags
from optim_hydra.migrating.overrides import migrate_command
from optim_hydra.migrating.pieces import Piece, pieces_of
from optim_hydra.migrating.python_code import migrate_python
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.shell_words import commands
from optim_hydra.migrating.yaml_texts import migrate_yaml
from optim_hydra.renamed_keys import RENAMED_KEYS

__all__ = ["migrate_markdown"]

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>```+|~~~+)[ \t]*(?P<kind>[\w+.-]*)[^\n]*\n"
    r"(?P<code>(?:.*\n)*?)(?P=indent)(?P=fence)[ \t]*\r?$",
    re.MULTILINE,
)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_SHELLS = ("", "bash", "sh", "shell", "console", "zsh", "text", "make", "makefile")
_PATH = re.compile(r"# (\S+\.ya?ml)\s*$", re.MULTILINE)


def migrate_markdown(
    text: str, source: str = "", held: Collection[int] = ()
) -> Migrated:
    """Say what to change in the code of a page.

    A YAML block whose first line is a comment with a path (`# conf/optim/mine.yaml`)
    is taken for that file.

    Args:
        text: The whole page.
        source: Of foreign keys and flags, one of `dialects.SOURCES`, or none.
        held: Where parts of nodes begin that stay as they are.

    """
    migrated = Migrated(text, held=held)
    at = 0
    for fence in _FENCE.finditer(text):
        _migrate_inline(text, at, fence.start(), migrated, source)
        part = _migrate_code(fence["kind"].lower(), fence["code"], source)
        migrated.take(part, fence.start("code"))
        at = fence.end()
    _migrate_inline(text, at, len(text), migrated, source)
    return migrated


def _migrate_code(kind: str, code: str, source: str) -> Migrated:
    if kind in _SHELLS:
        return migrate_script(code, source)
    if kind in ("yaml", "yml"):
        named = _PATH.match(code)
        part = migrate_yaml(code, PurePath(named[1] if named else ""), source)
    elif kind in ("python", "py"):
        part = migrate_python(code, source)
    else:
        return Migrated(code)
    if any(not question.key for question in part.questions) and not _speaks(code):
        return Migrated(code)  # a sketch in which nothing is ours
    return part


def _speaks(code: str) -> bool:
    words = set(re.findall(r"\w+", code))
    return bool(words & {*RENAMED_KEYS, *FOREIGN_KEYS})


def _migrate_inline(
    text: str, start: int, end: int, migrated: Migrated, source: str
) -> None:
    editor = WordsEditor(text, can_remove=False)
    for code in _INLINE.finditer(text, start, end):
        for pieces in _commands(text, code.start(1), code.end(1)):
            migrate_command(pieces, migrated, source, editor)
            if len(pieces) > 1 or "=" in code[1]:  # else a flag is only spoken of
                migrate_flags(pieces, migrated, source, editor)


def _commands(text: str, start: int, end: int) -> Iterator[list[Piece]]:
    for words in commands(text, start, end):
        yield list(pieces_of(words))
