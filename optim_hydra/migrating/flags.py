"""Turn flags of other libraries' programs (`--learning_rate 5e-5`) into overrides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from optim_hydra.migrating.editors import Editor
from optim_hydra.migrating.edits import (
    CannotEditError,
    Edit,
    Migrated,
    read_value,
    value_text,
)
from optim_hydra.migrating.flag_names import (
    LENGTHS,
    flag_key,
    flag_names,
    is_switch,
    other_source,
)
from optim_hydra.migrating.pieces import Piece
from optim_hydra.migrating.settings import convert_settings
from optim_hydra.migrating.settled import Settled
from optim_hydra.rewriting import SAME, Outcome, Unread
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_flags"]

_PROGRAM = re.compile(r"python|torchrun|accelerate|deepspeed|srun|\.py$")
_LENGTH = "total_training_steps"


@dataclass(frozen=True)
class _Flag:
    """A flag with its value, which may be a piece of its own."""

    key: str
    value: Any
    text: str
    first: Piece
    last: Piece
    problem: str = ""
    """Why its value can't be taken over as text."""


def migrate_flags(
    pieces: Sequence[Piece], migrated: Migrated, source: str, editor: Editor
) -> None:
    """Note the edits and questions of one command's flags.

    Args:
        pieces: Of the command.
        migrated: Of the text in which they stand.
        source: `transformers`, `megatron` or `torchtitan`; others have no flags.
        editor: Of this kind of text.

    """
    names = flag_names(source)
    flags = list(_flags(pieces, names, editor)) if names else []
    if not flags or not _is_program(pieces, flags):
        return
    items = {flag.key: flag.value for flag in flags}
    length = _length(pieces, source, items, editor)
    if length is not None and not isinstance(length.value, Unread):
        items.setdefault(length.key, length.value)
    # Other flags of the program may be kept at another place of the text.
    kept = migrated.text if _is_part(pieces) else ""
    outcomes = convert_settings(items, source, kept)
    part = Settled("the optimizer of this command")
    _ask_of_others(pieces, source, part)
    for flag in flags:
        done = outcomes.get(flag.key, Outcome(((flag.key, SAME),)))
        try:
            if done.undecided:
                raise CannotEditError(done.undecided)  # noqa: TRY301 - one way to ask
            part.edits.append(_edit(flag, done, editor))
        except CannotEditError as error:
            part.ask(flag.first.start, flag.first.text, str(error))
    if length is not None:
        text = f"{NODE_NAME}.{_LENGTH}={length.text}"
        part.edits.append(editor.add(length.last, text))
    part.note(migrated)


def _is_program(pieces: Sequence[Piece], flags: Sequence[_Flag]) -> bool:
    """Whether flags are those of a Python program, or are kept for one."""
    begin = pieces[0].text
    is_kept = begin[:1] in "-$" or (not flags[0].first.is_alone and "=" in begin)
    return is_kept or any(_PROGRAM.search(piece.text) for piece in pieces)


def _length(
    pieces: Sequence[Piece], source: str, items: dict[str, Any], editor: Editor
) -> _Flag | None:
    """Return the flag of the trainer's length, where the schedule has to be told."""
    name, key = LENGTHS[source]
    is_told = any(f"{NODE_NAME}.{_LENGTH}=" in piece.text for piece in pieces)
    found = [] if is_told or key in items else list(_flags(pieces, {name: key}, editor))
    flag = found[-1] if found else None
    if flag is None or flag.problem:
        return None
    is_off = isinstance(flag.value, (int, float)) and flag.value <= 0
    return None if is_off else flag


def _ask_of_others(pieces: Sequence[Piece], source: str, part: Settled) -> None:
    """Ask about flags of another library, beside which this one's mean little."""
    found: dict[str, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(other_source(piece.text, source), []).append(piece)
    found.pop("", None)
    for other, theirs in found.items():
        names = ", ".join(piece.text.partition("=")[0] for piece in theirs)
        why = (
            f"{names}: of {other}, beside flags of {source}: let --from {other} convert"
        )
        part.ask(theirs[0].start, theirs[0].text, f"{why} the command, or write ours")


def _is_part(pieces: Sequence[Piece]) -> bool:
    """Whether a command takes flags from a variable, or is one."""
    takes = any(piece.text[:1] == "$" and piece.text != "$@" for piece in pieces)
    return takes or not any(_PROGRAM.search(piece.text) for piece in pieces)


def _edit(flag: _Flag, done: Outcome, editor: Editor) -> Edit:
    if flag.problem:
        ours = [f"{NODE_NAME}.{path}" for path, _ in done.new]
        msg = f"{flag.problem}: write {', '.join(ours) or 'nothing'} in its place"
        raise CannotEditError(msg)
    if not done.new:
        return editor.remove(flag.first, flag.last)
    texts = [
        f"{NODE_NAME}.{path}="
        + (flag.text if value is SAME else value_text(value, spaced=False))
        for path, value in done.new
    ]
    return editor.replace(flag.first, flag.last, texts)


def _flags(
    pieces: Sequence[Piece], names: dict[str, str], editor: Editor
) -> Iterator[_Flag]:
    for number, piece in enumerate(pieces):
        key = flag_key(piece.text, names)
        if not key:
            continue
        _, equals, text = piece.text.partition("=")
        last = piece
        if not equals:
            follower = pieces[number + 1] if number + 1 < len(pieces) else None
            code = editor.code_after(piece, follower)
            if code:
                what = f"its value is {code}"
                yield _Flag(key, Unread(code), code, piece, piece, what)
                continue
            if follower is None or follower.text.startswith("--"):
                what = "" if is_switch(key) else "its value is not beside it"
                value = Unread("") if what else True
                yield _Flag(key, value, "true", piece, piece, what)
                continue
            text, last = follower.text, follower
        value = Unread(text) if last.is_formatted and "{" in text else read_value(text)
        yield _Flag(key, value, text, piece, last)
