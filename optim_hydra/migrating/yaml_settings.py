"""Ask about mappings that set another library's optimizer and are no node of ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from optim_hydra.errors import join_key
from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.settings import described, settings_among
from optim_hydra.migrating.yaml_items import items_of
from optim_hydra.migrating.yaml_nodes import key_text

__all__ = ["ask_of_settings"]


def ask_of_settings(
    root: Node, nodes: Collection[int], migrated: Migrated, source: str
) -> None:
    """Ask about the flat arguments of a program, such as those of a Trainer.

    Args:
        root: Of a document.
        nodes: The ids of its optimizer nodes.
        migrated: Of the whole text.
        source: One of `dialects.SOURCES`.

    """
    for at, mapping in _mappings(root, "", nodes):
        items = dict(items_of(mapping, migrated.text))
        values = {path: item.value for path, item in items.items()}
        found = settings_among(values, source)
        if found:
            first = min(items[key].index for key in found)
            migrated.ask(first, at, described(found, source))


def _mappings(
    node: Node, at: str, nodes: Collection[int]
) -> Iterator[tuple[str, MappingNode]]:
    """Yield each mapping outside of optimizer nodes, once."""
    if id(node) in nodes:
        return
    if isinstance(node, MappingNode):
        yield at, node
        for key, value in node.value:
            yield from _mappings(value, join_key(at, key_text(key)), nodes)
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            yield from _mappings(value, join_key(at, f"[{index}]"), nodes)
