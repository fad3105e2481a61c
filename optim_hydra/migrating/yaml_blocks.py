"""Ask about overrides and flags in a text of several lines, such as a job's script."""

from __future__ import annotations

import re

from ruamel.yaml.nodes import Node, ScalarNode

from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.yaml_overrides import nodes_below
from optim_hydra.renamed_keys import RENAMED_KEYS

__all__ = ["ask_of_blocks"]

_OLD = re.compile(rf"\boptim\.({'|'.join(RENAMED_KEYS)})=")


def ask_of_blocks(root: Node, migrated: Migrated, source: str) -> None:
    """Ask about what stands in block scalars, in which any byte may matter.

    Args:
        root: Of a document.
        migrated: Of the whole text.
        source: Of foreign keys and flags, one of `dialects.SOURCES`, or none.

    """
    for at, node in nodes_below(root, ""):
        if not (isinstance(node, ScalarNode) and node.style in ("|", ">")):
            continue
        start, end = node.start_mark.index, node.end_mark.index
        told = []
        for found in _OLD.finditer(migrated.text, start, end):
            told.append(found.start())
            why = f"it stands in a text: write {RENAMED_KEYS[found[1]].new}"
            migrated.ask(found.start(), f"{at}: optim.{found[1]}", why)
        part = migrate_script(migrated.text[start:end], source)
        for edit in part.edits:
            old = part.text[edit.start : edit.end].strip()
            if start + edit.start not in told and old:
                new = f"write {edit.new.strip()}" if edit.new.strip() else "remove it"
                why = f"it stands in a text: {new}"
                migrated.ask(start + edit.start, f"{at}: {old}", why)
        migrated.take(Migrated(part.text, questions=part.questions), start)
