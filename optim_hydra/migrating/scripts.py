"""Migrate a shell script, a Makefile or a Slurm file."""

from __future__ import annotations

from collections.abc import Collection

from optim_hydra.migrating.editors import WordsEditor
from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.flags import migrate_flags
from optim_hydra.migrating.overrides import migrate_command
from optim_hydra.migrating.pieces import pieces_of
from optim_hydra.migrating.shell_words import commands

__all__ = ["migrate_script"]


def migrate_script(text: str, source: str = "", held: Collection[int] = ()) -> Migrated:
    """Say what to change in the overrides and flags of the commands of a text.

    Args:
        text: The whole file.
        source: Of foreign keys and flags, one of `dialects.SOURCES`, or none.
        held: Where parts of nodes begin that stay as they are.

    """
    migrated = Migrated(text, held=held)
    editor = WordsEditor(text)
    for words in commands(text):
        pieces = list(pieces_of(words))
        migrate_command(pieces, migrated, source, editor)
        migrate_flags(pieces, migrated, source, editor)
    return migrated
