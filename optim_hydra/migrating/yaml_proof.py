"""Prove that an edited YAML text says what it should, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from optim_hydra.migrating.edits import once_anchored, value_text
from optim_hydra.migrating.yaml_edits import Change
from optim_hydra.rewriting import SAME

__all__ = ["compose_all", "is_proven"]


def compose_all(text: str) -> list[Node]:
    """Return the documents of a text with the places of their nodes.

    Raises:
        YAMLError: It is not YAML.

    """
    with once_anchored():
        documents = [n for n in YAML(pure=True).compose_all(text) if n is not None]
    for node in documents:
        _check_ends(node, ())
    return documents


def _check_ends(node: Node, within: tuple[int, ...]) -> None:
    """Refuse a document that is a part of itself, as no config is."""
    if id(node) in within:
        msg = "a value refers to itself"
        raise YAMLError(msg)
    held = node.value if isinstance(node, CollectionNode) else []
    for item in held:
        for child in item if isinstance(item, tuple) else (item,):
            _check_ends(child, (*within, id(node)))


def is_proven(
    documents: list[Node],
    changes: Mapping[int, Change],
    texts: Mapping[int, str],
    result: str,
) -> bool:
    """Whether a text is read as the old documents with these changes in them.

    Args:
        documents: As they were composed from the old text.
        changes: By id of the mapping.
        texts: New texts of scalars, by their id.
        result: The new text.

    """
    try:
        found = [_plain(node, {}, {}) for node in compose_all(result)]
    except YAMLError:
        return False
    return found == [_plain(node, changes, texts) for node in documents]


def _plain(node: Node, changes: Mapping[int, Change], texts: Mapping[int, str]) -> Any:
    """Return what a node says, with its items in a fixed order."""
    if isinstance(node, ScalarNode):
        return node.tag, texts.get(id(node), node.value)
    if not isinstance(node, MappingNode):
        return [_plain(item, changes, texts) for item in node.value]

    def plain(held: Node) -> Any:
        return _plain(held, changes, texts)

    change = changes.get(id(node), Change(node))
    pairs = [(key, _new(value)) for key, value in change.added]
    for number, (key, value) in enumerate(node.value):
        new = change.by_number.get(number)
        if new is None:
            pairs.append((repr(plain(key)), plain(value)))
        else:
            pairs += [(k, plain(value) if v is SAME else _new(v)) for k, v in new]
    # A key that is new is written bare, and so is read as text.
    return {"{": sorted((_key(key), repr(value)) for key, value in pairs)}


def _key(key: str) -> str:
    text = ("tag:yaml.org,2002:str", key)
    return key if key.startswith("(") else repr(text)


def _new(value: Any) -> Any:
    (node,) = compose_all(value_text(value))
    return _plain(node, {}, {})
