"""Migrate a YAML text: find its nodes, settle their items, edit, prove the result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import PurePath

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.flag_names import setting_keys
from optim_hydra.migrating.references import references_below
from optim_hydra.migrating.yaml_blocks import ask_of_blocks
from optim_hydra.migrating.yaml_conversion import migrate_node
from optim_hydra.migrating.yaml_edits import Change
from optim_hydra.migrating.yaml_nodes import (
    find_nodes,
    place_in_file,
)
from optim_hydra.migrating.yaml_overrides import (
    migrate_list,
    migrate_sweep,
    nodes_below,
)
from optim_hydra.migrating.yaml_proof import compose_all, is_proven
from optim_hydra.migrating.yaml_settings import ask_of_settings
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_yaml"]


def migrate_yaml(
    text: str, path: PurePath, source: str = "", held: Collection[int] = ()
) -> Migrated:
    """Say what to change in the optimizer nodes of a YAML text.

    Args:
        text: The whole file, without a byte order mark.
        path: Whose folder tells the config group.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.
        held: Where nodes begin that stay as they are.

    """
    migrated = Migrated(text, held=held)
    at = place_in_file(path, text)
    has_nodes = NODE_NAME in f"{at}{text}".lower()
    if not (has_nodes or any(key in text for key in setting_keys(source))):
        return migrated
    try:
        documents = compose_all(text)
    except YAMLError as error:
        if not has_nodes:
            return migrated  # templates and data of others need not be YAML
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        what = error.problem if isinstance(error, MarkedYAMLError) else str(error)
        what = f"the file is no YAML: {str(what).splitlines()[0]}"
        migrated.ask(mark.index if mark else 0, "", what)
        return migrated
    changes: dict[int, Change] = {}
    texts: dict[int, str] = {}
    for root in documents:
        nodes = find_nodes(root, at, source)
        for node in nodes:
            node.is_group = node.mapping is root and path.parent.name == NODE_NAME
            migrate_node(node, source, migrated, changes)
        _migrate_overrides(root, path, source, migrated, changes, texts)
        ask_of_blocks(root, migrated, source)
        ask_of_settings(root, {id(node.mapping) for node in nodes}, migrated, source)
    if migrated.edits and not is_proven(documents, changes, texts, migrated.result()):
        migrated.edits.clear()
        migrated.units = [replace(unit, edited=frozenset()) for unit in migrated.units]
        migrated.ask(0, "", "the file can't be edited safely: rename its keys by hand")
    migrated.references = [
        reference
        for root in documents
        for reference in references_below(root, at, text)
    ]
    return migrated


def _migrate_overrides(  # noqa: PLR0913, PLR0917 - where to note what was found
    root: Node,
    path: PurePath,
    source: str,
    migrated: Migrated,
    changes: dict[int, Change],
    texts: dict[int, str],
) -> None:
    """Migrate what a sweeper sweeps, and lists of overrides."""
    is_sweeper = path.parts[-3:-1] == ("hydra", "sweeper")
    params = "params" if is_sweeper else "hydra.sweeper.params"
    seen: set[int] = set()
    for at, node in nodes_below(root, ""):
        if id(node) in seen:
            continue
        seen.add(id(node))
        if at == params and isinstance(node, MappingNode):
            change = migrate_sweep(node, migrated, source)
            changes.update({id(node): change} if change else {})
        elif isinstance(node, SequenceNode) and at != "defaults":
            texts.update(migrate_list(node, migrated, source))
