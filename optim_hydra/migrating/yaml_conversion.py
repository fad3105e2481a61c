"""Convert one optimizer node of a YAML text: settle its items, and edit them."""

from __future__ import annotations

from collections.abc import Mapping

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_in_file
from optim_hydra.errors import join_key
from optim_hydra.field_checks import CHECKS
from optim_hydra.migrating.edits import CannotEditError, Edit, Migrated, value_text
from optim_hydra.migrating.settled import Settled
from optim_hydra.migrating.units import Unit
from optim_hydra.migrating.yaml_edits import Change, change_edits
from optim_hydra.migrating.yaml_items import Item, items_of
from optim_hydra.migrating.yaml_nodes import FoundNode
from optim_hydra.rewriting import EXTRA, SAME, Outcome
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_node"]


def migrate_node(
    node: FoundNode, source: str, migrated: Migrated, changes: dict[int, Change]
) -> None:
    """Note the edits and questions of one node.

    Args:
        node: As it was found.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.
        migrated: Of the text in which it stands.
        changes: Gets those of the node, by id of the mapping, for the proof.

    """
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
    for path, done in outcomes.items():
        if path not in items:
            continue
        why = done.undecided
        if not why and node.shared:
            why = f"its mapping is that of {node.shared}, too, and one of the two is no"
            why += " optimizer node: write each out"
        if why:
            part.ask(items[path].index, join_key(node.at, path), why)
        else:
            settled[path] = done
    edited = _edit(node, items, settled, part, migrated, changes)
    unit = Unit(start, node.at, given, dialect, outcomes, edited, is_whole=is_whole)
    migrated.units.append(unit)


def _edit(  # noqa: PLR0913, PLR0917 - a node, what is settled, and where to note it
    node: FoundNode,
    items: Mapping[str, Item],
    settled: Mapping[str, Outcome],
    part: Settled,
    migrated: Migrated,
    changes: dict[int, Change],
) -> frozenset[str]:
    """Note the edits of one node, and ask about what can't be edited.

    Returns:
        The keys that become others.

    """
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
    if part.waits or not made:
        return frozenset()
    changes.update({id(change.mapping): change for change in made})
    return frozenset(done)


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
