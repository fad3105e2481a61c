"""Read the items of a mapping in a YAML text with their places and plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from optim_hydra.migrating.edits import read_value
from optim_hydra.migrating.yaml_nodes import MERGE, pairs_of
from optim_hydra.rewriting import EXTRA, Unread

__all__ = ["Item", "items_of"]


@dataclass(frozen=True)
class Item:
    """One item of a node, at its top or below override_optimizer_config."""

    owner: MappingNode
    number: int
    index: int
    """Where its key begins in the text."""
    value: Any


def items_of(mapping: MappingNode, text: str) -> list[tuple[str, Item]]:
    """Return the items of an optimizer node by their path below it."""
    found = []
    for number, name, key, value in pairs_of(mapping):
        if name == EXTRA and isinstance(value, MappingNode) and value.value:
            is_alias = value.start_mark.index < key.start_mark.index
            inner = [] if is_alias else list(pairs_of(value))
            found += [
                (f"{EXTRA}.{name}", Item(value, n, _at(k), _value(k, v, text)))
                for n, name, k, v in inner
            ]
        elif name != MERGE:
            held = _value(key, value, text)
            found.append((name, Item(mapping, number, _at(key), held)))
    return found


def _at(key: Node) -> int:
    return int(key.start_mark.index)


def _value(key: Node, value: Node, text: str) -> Any:
    if value.start_mark.index < key.start_mark.index:
        return Unread(f"*{value.anchor}")
    if isinstance(value, ScalarNode):
        if value.style:
            return Unread(value.value) if "${" in value.value else value.value
        return read_value(value.value)
    if isinstance(value, MappingNode):
        return {name: _value(k, v, text) for _, name, k, v in pairs_of(value)}
    return [_value(key, item, text) for item in value.value]
