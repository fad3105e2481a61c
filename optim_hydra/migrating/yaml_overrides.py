"""Migrate override texts that stand in a YAML file: a sweeper's keys, lists, blocks."""

from __future__ import annotations

from collections.abc import Iterator

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_in_file
from optim_hydra.errors import join_key
from optim_hydra.migrating.editors import ListEditor
from optim_hydra.migrating.edits import CannotEditError, Edit, Migrated
from optim_hydra.migrating.flags import migrate_flags
from optim_hydra.migrating.overrides import (
    Override,
    migrate_command,
    read_overrides,
    unit_of,
)
from optim_hydra.migrating.pieces import Piece
from optim_hydra.migrating.settled import Settled
from optim_hydra.migrating.yaml_edits import Change, Items, change_edits
from optim_hydra.migrating.yaml_nodes import pairs_of
from optim_hydra.rewriting import SAME

__all__ = ["migrate_list", "migrate_sweep", "nodes_below"]


def nodes_below(node: Node, at: str) -> Iterator[tuple[str, Node]]:
    """Yield every node of a document once for each of its places, with the key."""
    yield at, node
    if isinstance(node, MappingNode):
        for _, name, _, value in pairs_of(node):
            yield from nodes_below(value, join_key(at, name))
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            yield from nodes_below(value, join_key(at, f"[{index}]"))


def migrate_sweep(
    params: MappingNode, migrated: Migrated, source: str
) -> Change | None:
    """Note the edits of the overrides that a sweeper's `params` sweep."""
    overrides: list[tuple[int, Override]] = []
    for number, name, key_node, value in pairs_of(params):
        held = value.value if isinstance(value, ScalarNode) else ""
        place = (key_node.start_mark.index, key_node.end_mark.index)
        piece = Piece(*place, f"{name}={held}", place, "", is_alone=True)
        overrides += [(number, override) for override in read_overrides([piece])]
    change = Change(params)
    for node in dict.fromkeys(override.node for _, override in overrides):
        own = {o.path: (n, o) for n, o in overrides if o.node == node}
        items = {path: override.read for path, (_, override) in own.items()}
        dialect = dialect_in_file(source, items)
        part = Settled(f"{node} of this sweep" if dialect else "")
        swept: dict[int, Items] = {}
        outcomes = convert_items(items, dialect, typed=True)
        unit = unit_of([o for _, o in own.values()], items, dialect, outcomes)
        part.is_held = unit.start in migrated.held
        migrated.units.append(unit)
        for path, done in outcomes.items():
            number, override = own[path]
            if done.undecided:
                part.ask(override.piece.start, f"{node}.{path}", done.undecided)
            else:
                swept[number] = [
                    (override.text(new, SAME).removesuffix(override.value), held)
                    for new, held in done.new
                ]
        part.has_more = bool(swept)
        part.note(migrated)
        change.by_number.update({} if part.waits else swept)
    if not change.by_number:
        return None
    try:
        migrated.edits += change_edits(migrated.text, change)
    except CannotEditError as error:
        start = params.start_mark.index
        migrated.ask(start, "params", f"it can't be edited here: {error}")
        return None
    return change


def migrate_list(
    sequence: SequenceNode, migrated: Migrated, source: str
) -> dict[int, str]:
    """Note the edits of the overrides in a list of texts.

    Returns:
        The new text of each item that changes, by its id.

    """
    pieces: dict[Piece, Node] = {}
    for item in sequence.value:
        written = migrated.text[item.start_mark.index : item.end_mark.index]
        quote = written[:1] if written[:1] in "'\"" else ""
        if isinstance(item, ScalarNode) and written.strip("'\"") == item.value:
            start = item.start_mark.index + len(quote)
            end = start + len(item.value)
            piece = Piece(start, end, item.value, (start, end), quote, is_alone=False)
            pieces[piece] = item
    part = Migrated(migrated.text, held=migrated.held)
    migrate_command(list(pieces), part, source, ListEditor())
    migrate_flags(list(pieces), part, source, ListEditor())
    texts: dict[int, str] = {}
    for piece, item in pieces.items():
        own = [e for e in part.edits if piece.start <= e.start <= e.end <= piece.end]
        if own:
            moved = [
                Edit(e.start - piece.start, e.end - piece.start, e.new) for e in own
            ]
            texts[id(item)] = Migrated(piece.text, moved).result()
            migrated.edits += own
    migrated.questions += part.questions
    migrated.units += part.units
    migrated.choices += part.choices
    return texts
