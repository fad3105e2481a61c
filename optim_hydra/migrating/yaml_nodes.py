"""Find the optimizer nodes of a YAML text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from optim_hydra.errors import join_key
from optim_hydra.foreign_keys import VERL_CLASSES
from optim_hydra.mounts import mounts, place_of
from optim_hydra.tree import NODE_NAME, is_our_target

__all__ = ["FoundNode", "find_nodes", "key_text", "pairs_of", "place_in_file"]

MERGE = "<<"


@dataclass
class FoundNode:
    """A mapping of a YAML text, and what is known of its places."""

    mapping: MappingNode
    at: str
    is_node: bool
    """Whether it is an optimizer node at the first of its places."""
    shared: str = ""
    """The place at which it is something else; empty where it is the same at all."""
    merged: list[MappingNode] = field(default_factory=list)
    """Mappings whose items it takes over by `<<`."""
    is_group: bool = False
    """Whether it is a whole file of the group `optim`."""


def place_in_file(path: PurePath, text: str) -> str:
    """Return the full key of a file's top level, as far as the file alone tells."""
    header = re.search(r"^#\s*@package\s+(\S+)", text, re.MULTILINE)
    is_group = path.parent.name == NODE_NAME
    config_path = f"{NODE_NAME}/{path.stem}" if is_group else path.stem
    return place_of(config_path, header[1] if header else "")


def find_nodes(root: Node, at: str, source: str) -> list[FoundNode]:
    """Return every mapping that is an optimizer node, or is merged into one.

    Args:
        root: Of a document.
        at: Full key of the document, such as `optim` for a file of that group.
        source: `verl`: nodes that name one of its config classes are taken too.

    """
    found: dict[int, FoundNode] = {}
    mounted = mounts(_defaults(root), at)
    for place, mapping in _mappings(root, at):
        is_node = place in mounted or _is_node(mapping, place, source)
        known = found.setdefault(id(mapping), FoundNode(mapping, place, is_node))
        if known.is_node != is_node:
            known.shared = known.shared or place or "the top"
        merged = [
            held
            for key, value in mapping.value
            if key_text(key) == MERGE
            for held in _merged(value)
        ]
        known.merged = merged
        for base in merged:
            held = found.setdefault(id(base), FoundNode(base, place, is_node))
            if held.is_node != is_node:
                held.shared = held.shared or place or "the top"
    return [node for node in found.values() if node.is_node or node.shared]


def pairs_of(mapping: MappingNode) -> Iterator[tuple[int, str, ScalarNode, Node]]:
    """Yield number, key, and the nodes of key and value of each item."""
    for number, (key, value) in enumerate(mapping.value):
        if isinstance(key, ScalarNode):
            yield number, key.value, key, value


def key_text(key: Node) -> str:
    """Return a key's text; nothing for a key that is no scalar."""
    return str(key.value) if isinstance(key, ScalarNode) else ""


def _mappings(node: Node, at: str) -> Iterator[tuple[str, MappingNode]]:
    if isinstance(node, MappingNode):
        yield at, node
        for key, value in node.value:
            if key_text(key) != MERGE:
                yield from _mappings(value, join_key(at, key_text(key)))
    elif isinstance(node, SequenceNode):
        for index, value in enumerate(node.value):
            yield from _mappings(value, join_key(at, f"[{index}]"))


def _merged(value: Node) -> list[MappingNode]:
    nodes = value.value if isinstance(value, SequenceNode) else [value]
    return [node for node in nodes if isinstance(node, MappingNode)]


def _is_node(mapping: MappingNode, at: str, source: str) -> bool:
    targets = [v.value for _, k, _, v in pairs_of(mapping) if k == "_target_"]
    if targets and isinstance(targets[0], str) and targets[0]:
        is_verl = targets[0].rpartition(".")[2] in VERL_CLASSES
        return is_our_target(targets[0]) or (source == "verl" and is_verl)
    return at.rpartition(".")[2] == NODE_NAME


def _defaults(root: Node) -> list[str]:
    """Return the keys of the entries of a defaults list."""
    if not isinstance(root, MappingNode):
        return []
    lists = [v for _, key, _, v in pairs_of(root) if key == "defaults"]
    entries = [
        e for held in lists if isinstance(held, SequenceNode) for e in held.value
    ]
    return [
        key
        for entry in entries
        if isinstance(entry, MappingNode)
        for _, key, _, _ in pairs_of(entry)
    ]
