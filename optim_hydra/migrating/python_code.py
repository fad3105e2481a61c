"""Migrate the override texts of a Python program: those that are string literals."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from optim_hydra.foreign_keys import FOREIGN_KEYS
from optim_hydra.migrating.editors import ProgramEditor
from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.flag_names import setting_keys
from optim_hydra.migrating.flags import migrate_flags
from optim_hydra.migrating.overrides import migrate_command
from optim_hydra.migrating.pieces import Piece, parts_of
from optim_hydra.migrating.python_data import migrate_data
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_python"]

_LITERAL = re.compile(r"(?s)([A-Za-z]*)('''|\"\"\"|'|\")(.*)\2")


_FLAG = re.compile(r"--[a-z]")
_DEFINES = ("add_argument", "add_option", "Argument", "Option", "argument", "option")


@dataclass(frozen=True)
class _Bracket:
    """An opening bracket, and what is called by it, if anything is."""

    char: str = ""
    start: int = 0
    called: str = ""


@dataclass(frozen=True)
class _Place:
    """A token with its place in the text and the innermost bracket around it."""

    token: tokenize.TokenInfo
    start: int
    end: int
    bracket: _Bracket


def migrate_python(text: str, source: str = "", held: Collection[int] = ()) -> Migrated:
    """Say what to change in the strings of a program; uses of old keys are questions.

    Args:
        text: The whole file.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.
        held: Where parts of nodes begin that stay as they are.

    """
    migrated = Migrated(text, held=held)
    if not (
        NODE_NAME in text
        or _FLAG.search(text)
        or any(key in text for key in setting_keys(source))
    ):
        return migrated
    try:
        places = list(_places(text))
    except (tokenize.TokenError, SyntaxError) as error:
        migrated.ask(0, "", f"the file is no Python: {error.args[0]}")
        return migrated
    groups: dict[_Bracket, list[Piece]] = {}
    brackets: dict[Piece, str] = {}
    for number, place in enumerate(places):
        if place.token.type == tokenize.STRING:
            for piece in _pieces(place):
                # Strings outside brackets have nothing to do with each other.
                alone = _Bracket("", place.start)
                group = place.bracket if place.bracket.char else alone
                groups.setdefault(group, []).append(piece)
                brackets[piece] = place.bracket.char
            _ask_of_name(place, migrated)
        _ask_of_attribute(places[max(number - 4, 0) : number + 1], migrated)
    editor = ProgramEditor(text, brackets)
    for bracket, pieces in groups.items():
        migrate_command(pieces, migrated, source, editor)
        if bracket.called not in _DEFINES:  # the program's own flags
            for command in _commands(pieces, text):
                migrate_flags(command, migrated, source, editor)
    migrate_data(text, migrated, source)
    return migrated


def _commands(pieces: list[Piece], text: str) -> Iterator[list[Piece]]:
    """Yield the pieces of each line of a string, and the items of a list as one."""
    found: list[Piece] = []
    for piece in pieces:
        between = text[found[-1].end : piece.start] if found else ""
        is_next = not piece.is_alone and re.search(r"(?<!\\)\r?\n|;|&&|\|", between)
        if found and (is_next or found[-1].is_alone != piece.is_alone):
            yield found
            found = []
        found.append(piece)
    yield found


def _places(text: str) -> Iterator[_Place]:
    starts = [0, *(found.end() for found in re.finditer("\r\n|\n|\r", text))]
    starts.append(len(text))  # of the end, where the last line is not ended
    stack: list[_Bracket] = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        start = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.OP and token.string in "([{":
            is_call = token.string == "(" and re.fullmatch(r"[\w)\]]+", before)
            stack.append(_Bracket(token.string, start, before if is_call else ""))
        elif token.type == tokenize.OP and token.string in ")]}" and stack:
            stack.pop()
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.string
        yield _Place(token, start, end, stack[-1] if stack else _Bracket())


def _pieces(place: _Place) -> Iterator[Piece]:
    literal = _LITERAL.fullmatch(place.token.string)
    if literal is None:
        return
    begin = place.start + literal.start(3)
    parts = parts_of(literal[3], begin)
    for start, end, part in parts:
        is_alone = len(parts) == 1
        outer = (place.start, place.end) if is_alone else (start, end)
        is_formatted = "f" in literal[1].lower()
        yield Piece(start, end, part, outer, literal[2], is_alone, is_formatted)


def _ask_of_name(place: _Place, migrated: Migrated) -> None:
    """Ask about a string that is the full key of an old key."""
    key = place.token.string.strip("'\"")
    node, _, last = key.rpartition(".")
    if last in RENAMED_KEYS and node.rpartition(".")[2] == NODE_NAME:
        migrated.ask(place.start, key, f"the program names it: {_advice(last)}")


def _ask_of_attribute(places: list[_Place], migrated: Migrated) -> None:
    """Ask about `optim.OLD`, which reads or sets an old key."""
    words = [place.token.string for place in places]
    if words[-3:-1] != [NODE_NAME, "."]:
        return
    name = words[-1]
    if name == "lr_scheduler" and (words[-4:-3] != ["."] or words[-5:-4] == ["torch"]):
        return  # the module of torch
    if name in RENAMED_KEYS or name in FOREIGN_KEYS:
        key = f"{NODE_NAME}.{name}"
        migrated.ask(places[-1].start, key, f"the program reads it: {_advice(name)}")


def _advice(name: str) -> str:
    renamed = RENAMED_KEYS.get(name)
    if renamed:
        return f"write {renamed.new}"
    return FOREIGN_KEYS[name].advice({})
