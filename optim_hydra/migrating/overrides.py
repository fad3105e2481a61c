"""Migrate the overrides of one command: find those of optimizer nodes, edit them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_in_file
from optim_hydra.errors import MigrationError
from optim_hydra.migrating.editors import Editor
from optim_hydra.migrating.edits import (
    CannotEditError,
    Edit,
    Migrated,
    read_value,
    value_text,
)
from optim_hydra.migrating.pieces import Piece
from optim_hydra.migrating.settled import Settled
from optim_hydra.migrating.sure_keys import is_always
from optim_hydra.migrating.units import Unit
from optim_hydra.override_text import renamed_in_braces
from optim_hydra.rewriting import SAME, Outcome, Unread
from optim_hydra.tree import NODE_NAME

__all__ = ["Override", "migrate_command", "read_overrides", "unit_of"]

_OVERRIDE = re.compile(
    r"(?s)(?P<prefix>\+\+|\+|~)?(?P<key>[A-Za-z_][\w.\[\]-]*)(?P<value>=.*)?"
)
_GROUP = re.compile(r"(?:\+|\+\+)?optim(?:@[\w.]+)?=(?P<name>[\w.]+)")
_VERL_GROUPS = ("fsdp", "megatron", "veomni", "torchtitan", "automodel")


@dataclass(frozen=True)
class Override:
    """One override of an optimizer node, such as `++actor.optim.eps=1e-8`."""

    piece: Piece
    prefix: str
    node: str
    path: str
    value: str
    """With its equals sign; empty for a key that is deleted."""

    @property
    def read(self) -> Any:
        """Return the value as it will be read."""
        if not self.value or self.prefix == "~":
            return Unread(self.value)
        if self.piece.is_formatted and "{" in self.value:
            return Unread(self.value[1:])
        return read_value(self.value[1:])

    def text(self, path: str, value: Any) -> str:
        """Return the override of another key of the same node."""
        prefix = self.prefix
        # In every schema, where a `+` would be refused, and not in every file.
        if prefix == "+" or not (prefix or is_always(self.path, path)):
            prefix = "++"
        held = self.value if value is SAME else f"={value_text(value, spaced=False)}"
        return f"{prefix}{self.node}.{path}{held}"


def read_overrides(pieces: Iterable[Piece]) -> list[Override]:
    """Return the overrides of keys below a node called `optim`."""
    found = []
    for piece in pieces:
        match = _OVERRIDE.fullmatch(piece.text)
        if match is None or not (match["value"] or match["prefix"] == "~"):
            continue
        segments = match["key"].split(".")
        if NODE_NAME not in segments[:-1]:
            continue
        at = len(segments) - 2 - segments[-2::-1].index(NODE_NAME)
        node, path = ".".join(segments[: at + 1]), ".".join(segments[at + 1 :])
        prefix = match["prefix"] or ""
        found.append(Override(piece, prefix, node, path, match["value"] or ""))
    return found


def migrate_command(
    pieces: Sequence[Piece], migrated: Migrated, source: str, editor: Editor
) -> None:
    """Note the edits and questions of the overrides of one command.

    Args:
        pieces: Of the command.
        migrated: Of the text in which they stand.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.
        editor: Of this kind of text.

    """
    overrides = read_overrides(pieces)
    for node in dict.fromkeys(override.node for override in overrides):
        own = [override for override in overrides if override.node == node]
        _migrate_node(own, migrated, source, editor)
    for piece in pieces:
        if "{" in piece.text and NODE_NAME in piece.text:
            _migrate_braces(piece, migrated)
        group = _GROUP.fullmatch(piece.text)
        if source == "verl" and group and group["name"] in _VERL_GROUPS:
            migrated.choices.append((piece.start, piece.text, group["name"]))


def _migrate_node(
    own: list[Override], migrated: Migrated, source: str, editor: Editor
) -> None:
    items: dict[str, Any] = {}
    for override in own:
        # With `++` it is ours, from a schedule of torchtitan's: verl's file has it.
        if (override.prefix, override.path) != ("++", "zero_indexed_step"):
            items[override.path] = override.read
    dialect = dialect_in_file(source, items)
    outcomes = convert_items(items, dialect, typed=True)
    part = Settled(f"{own[0].node} of this command" if dialect else "")
    start = own[0].piece.start
    part.is_held = start in migrated.held
    migrated.units.append(unit_of(own, items, dialect, outcomes))
    for override in own:
        done = outcomes.get(override.path)
        if done is None:
            continue
        place = override.piece.start, f"{override.node}.{override.path}"
        if done.undecided:
            part.ask(*place, done.undecided)
            continue
        try:
            part.edits.append(_edit(override, done, editor))
        except CannotEditError as error:
            part.ask(*place, str(error))
    part.note(migrated)


def unit_of(
    own: Sequence[Override],
    items: Mapping[str, Any],
    dialect: str,
    outcomes: Mapping[str, Outcome],
) -> Unit:
    """Return what a command sets of one node."""
    return Unit(
        own[0].piece.start,
        own[0].node,
        items,
        dialect,
        outcomes,
        is_command=True,
        changed=frozenset(o.path for o in own if not o.prefix),
        added=frozenset(o.path for o in own if o.prefix == "+"),
    )


def _edit(override: Override, done: Outcome, editor: Editor) -> Edit:
    piece, done = override.piece, done.as_written(override.read)
    if not done.new:
        return editor.remove(piece, piece)
    if override.prefix == "~" and not all(value is SAME for _, value in done.new):
        msg = "a deleted key has no value to convert: delete ours"
        raise CannotEditError(msg)
    texts = [override.text(path, value) for path, value in done.new]
    if len(texts) == 1 and done.new[0][1] is SAME:
        key = texts[0].removesuffix(override.value)
        return Edit(piece.start, piece.end - len(override.value), key)
    if piece.quote and any(piece.quote in text for text in texts):
        msg = "its value has quotes: write ours by hand"
        raise CannotEditError(msg)
    return editor.replace(piece, piece, texts)


def _migrate_braces(piece: Piece, migrated: Migrated) -> None:
    try:
        text = renamed_in_braces(piece.text)
    except MigrationError as error:
        for problem in error.problems:
            migrated.ask(piece.start, problem.key, problem.what)
        return
    # Only what differs: other edits may stand in the same piece.
    pair = SequenceMatcher(None, piece.text, text, autojunk=False)
    migrated.edits += [
        Edit(piece.start + start, piece.start + end, text[begin:stop])
        for tag, start, end, begin, stop in pair.get_opcodes()
        if tag != "equal"
    ]
