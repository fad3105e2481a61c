"""Migrate a YAML text: find its nodes, settle their items, edit, prove the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_in_file
from optim_hydra.errors import join_key
from optim_hydra.migrating.edits import CannotEditError, Edit, Migrated, value_text
from optim_hydra.migrating.settled import Settled
from optim_hydra.migrating.units import Unit
from optim_hydra.migrating.yaml_edits import Change, change_edits
from optim_hydra.migrating.yaml_items import Item, items_of
from optim_hydra.migrating.yaml_nodes import (
    FoundNode,
    find_nodes,
    place_in_file,
)
from optim_hydra.migrating.yaml_overrides import (
    migrate_list,
    migrate_sweep,
    migrate_text_blocks,
    nodes_below,
)
from optim_hydra.migrating.yaml_proof import compose_all, is_proven
from optim_hydra.rewriting import EXTRA, SAME, Outcome
from optim_hydra.schema import CHECKS
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
    if NODE_NAME not in f"{at}{text}".lower():
        return migrated  # templates and data of others need not be YAML
    try:
        documents = compose_all(text)
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        what = error.problem if isinstance(error, MarkedYAMLError) else str(error)
        what = f"the file is no YAML: {str(what).splitlines()[0]}"
        migrated.ask(mark.index if mark else 0, "", what)
        return migrated
    changes: dict[int, Change] = {}
    texts: dict[int, str] = {}
    for root in documents:
        for node in find_nodes(root, at, source):
            node.is_group = node.mapping is root and path.parent.name == NODE_NAME
            _migrate_node(node, source, migrated, changes)
        _migrate_overrides(root, path, source, migrated, changes, texts)
        migrate_text_blocks(root, migrated)
    if migrated.edits and not is_proven(documents, changes, texts, migrated.result()):
        migrated.edits.clear()
        migrated.ask(0, "", "the file can't be edited safely: rename its keys by hand")
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


def _migrate_node(
    node: FoundNode, source: str, migrated: Migrated, changes: dict[int, Change]
) -> None:
    items: dict[str, Item] = {}
    for path, item in items_of(node.mapping, migrated.text):
        if path in items:
            migrated.ask(item.index, join_key(node.at, path), "the key is here twice")
            return
        items[path] = item
    values = {path: item.value for path, item in items.items()}
    target = str(values.get("_target_") or "")
    inherited = {
        path: item.value
        for base in node.merged
        for path, item in items_of(base, migrated.text)
        if path in CHECKS
    }
    given = {**inherited, **values}
    if source != "verl" or not target.startswith("verl."):
        given.pop("_target_", None)
    dialect = dialect_in_file(source, given, target)
    part = Settled(f"the node {node.at or NODE_NAME}" if dialect else "")
    settled: dict[str, Outcome] = {}
    outcomes = convert_items(given, dialect)
    start = node.mapping.start_mark.index
    part.is_held = start in migrated.held
    is_whole = bool(target) or node.is_group
    unit = Unit(start, node.at, given, dialect, outcomes, is_whole=is_whole)
    migrated.units.append(unit)
    for path, done in outcomes.items():
        if path not in items:
            continue
        why = done.undecided
        if not why and node.shared:
            why = "it stands in a mapping that is no optimizer node at another place"
        if why:
            part.ask(items[path].index, join_key(node.at, path), why)
        else:
            settled[path] = done
    _edit(node, items, settled, part, migrated, changes)


def _edit(  # noqa: PLR0913, PLR0917 - a node, what is settled, and where to note it
    node: FoundNode,
    items: Mapping[str, Item],
    settled: Mapping[str, Outcome],
    part: Settled,
    migrated: Migrated,
    changes: dict[int, Change],
) -> None:
    """Note the edits of one node, and ask about what can't be edited."""
    done = dict(settled)
    for path, outcome in settled.items():
        try:
            _edits(node, items, {path: outcome}, migrated.text)
        except CannotEditError as error:
            del done[path]
            _ask(node, path, items[path], outcome, error, part)
    try:
        made, part.edits = _edits(node, items, done, migrated.text)
    except CannotEditError as error:
        made = []
        for path, outcome in done.items():
            _ask(node, path, items[path], outcome, error, part)
    part.note(migrated)
    if not part.waits:
        changes.update({id(change.mapping): change for change in made})


def _ask(  # noqa: PLR0913, PLR0917 - the item, its place and its trouble
    node: FoundNode,
    path: str,
    item: Item,
    outcome: Outcome,
    error: CannotEditError,
    part: Settled,
) -> None:
    texts = [
        f"{name}: {value_text(item.value if value is SAME else value)}"
        for name, value in outcome.new
    ]
    what = f"write {', '.join(texts)}" if texts else "remove it"
    why = f"it can't be edited here, {error}: {what}"
    part.ask(item.index, join_key(node.at, path), why)


def _edits(
    node: FoundNode,
    items: Mapping[str, Item],
    settled: Mapping[str, Outcome],
    text: str,
) -> tuple[list[Change], list[Edit]]:
    made = _changes(node, items, settled)
    return made, [edit for change in made for edit in change_edits(text, change)]


def _changes(
    node: FoundNode, items: Mapping[str, Item], settled: Mapping[str, Outcome]
) -> list[Change]:
    """Sort what is new by where it stands: in the node, or below it."""
    child = next((i.owner for p, i in items.items() if p.startswith(f"{EXTRA}.")), None)
    outer = Change(node.mapping)
    inner = Change(child) if child is not None else None
    lonely: dict[str, object] = {}
    for path, done in settled.items():
        item = items[path]
        if all("." not in name for name in (path, *(n for n, _ in done.new))):
            done = done.as_written(item.value)  # noqa: PLW2901 - the same, better told
        below = [(n.removeprefix(f"{EXTRA}."), v) for n, v in done.new if "." in n]
        above = [(n, v) for n, v in done.new if "." not in n]
        if inner is not None and item.owner is inner.mapping:
            inner.by_number[item.number] = below
            outer.added += above
            continue
        outer.by_number[item.number] = above
        if inner is not None:
            inner.added += below
        elif below:
            held = items.get(EXTRA, item).number
            lonely.update(below)
            others = [(n, v) for n, v in outer.by_number.get(held, []) if n != EXTRA]
            outer.by_number[held] = [*others, (EXTRA, lonely)]
    return [outer] if inner is None else [outer, inner]
