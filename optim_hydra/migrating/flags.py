"""Turn flags of other libraries' programs (`--learning_rate 5e-5`) into overrides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.foreign_keys import FOREIGN_ROWS
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
from optim_hydra.rewriting import SAME, Outcome
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_flags"]

_OWNERS = {
    "transformers": "transformers",
    "megatron": "Megatron",
    "torchtitan": "torchtitan",
}
# Flags with our own names, and switches without a value.
_OURS = {
    "transformers": ("weight_decay", "lr_scheduler_type"),
    "megatron": ("lr", "weight_decay", "clip_grad", "lr_decay_style", "optimizer"),
    "torchtitan": ("lr", "weight_decay", "eps", "implementation"),
}
_NOT_FLAGS = ("max_steps",)  # the trainer's own length
_TITAN_SCHEDULE = (
    "warmup_steps",
    "total_steps",
    "decay_ratio",
    "decay_type",
    "min_lr_factor",
)
_PROGRAM = re.compile(r"python|torchrun|accelerate|deepspeed|srun|\.py$")


@dataclass(frozen=True)
class _Flag:
    """A flag with its value, which may be a piece of its own."""

    key: str
    value: Any
    text: str
    first: Piece
    last: Piece


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
    names = _names(source)
    flags = list(_flags(pieces, names)) if names else []
    if not flags or not _is_program(pieces, flags):
        return
    outcomes = convert_items({flag.key: flag.value for flag in flags}, source)
    part = Settled("the optimizer of this command")
    for flag in flags:
        done = outcomes.get(flag.key, Outcome(((flag.key, SAME),)))
        try:
            if done.undecided:
                raise CannotEditError(done.undecided)  # noqa: TRY301 - one way to ask
            part.edits.append(_edit(flag, done, editor))
        except CannotEditError as error:
            part.ask(flag.first.start, flag.first.text, str(error))
    part.note(migrated)


def _is_program(pieces: Sequence[Piece], flags: Sequence[_Flag]) -> bool:
    """Whether flags are those of a Python program, or are kept for one."""
    is_kept = not flags[0].first.is_alone or pieces[0].text.startswith("--")
    return is_kept or any(_PROGRAM.search(piece.text) for piece in pieces)


def _edit(flag: _Flag, done: Outcome, editor: Editor) -> Edit:
    if not done.new:
        return editor.remove(flag.first, flag.last)
    texts = [
        f"{NODE_NAME}.{path}="
        + (flag.text if value is SAME else value_text(value, spaced=False))
        for path, value in done.new
    ]
    return editor.replace(flag.first, flag.last, texts)


def _names(source: str) -> dict[str, str]:
    """Return a source's flags, each with the key that it sets."""
    if source not in _OWNERS:
        return {}
    rows = [row.key for row in FOREIGN_ROWS if row.owner == _OWNERS[source]]
    keys = [key for key in (*rows, *_OURS[source]) if key not in _NOT_FLAGS]
    if source == "torchtitan":
        sections = dict.fromkeys(keys, "optimizer")
        sections.update(dict.fromkeys(_TITAN_SCHEDULE, "lr_scheduler"))
        return {f"--{section}.{key}": key for key, section in sections.items()}
    return {f"--{key}": key for key in keys}


def _flags(pieces: Sequence[Piece], names: dict[str, str]) -> Iterator[_Flag]:
    for number, piece in enumerate(pieces):
        name, equals, text = piece.text.partition("=")
        key = names.get(name) or names.get(name[:2] + name[2:].replace("-", "_"))
        if key is None:
            continue
        last = piece
        if not equals:
            follower = pieces[number + 1] if number + 1 < len(pieces) else None
            if follower is None or follower.text.startswith("--"):
                yield _Flag(key, read_value("true"), "true", piece, piece)
                continue
            text, last = follower.text, follower
        yield _Flag(key, read_value(text), text, piece, last)
