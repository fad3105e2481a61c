"""Tell where the values of a YAML text stand: ruamel.yaml counts more to some."""

from __future__ import annotations

import re

from ruamel.yaml.nodes import CollectionNode, Node

from optim_hydra.migrating.edits import CannotEditError

__all__ = ["alias", "empty", "is_alias", "value_end"]


def value_end(text: str, key: Node, value: Node) -> int:
    """Return where a value ends, without the comments and lines after it."""
    if is_alias(key, value):
        return alias(text, key).end()
    if value.start_mark.index == value.end_mark.index:
        return empty(text, key)
    if not isinstance(value, CollectionNode) or value.flow_style or not value.value:
        return int(value.end_mark.index)
    last = value.value[-1]
    pair = last if isinstance(last, tuple) else (key, last)
    return value_end(text, *pair)


def is_alias(key: Node, value: Node) -> bool:
    """Whether a value is a reference to one above."""
    return bool(value.start_mark.index < key.start_mark.index)


def alias(text: str, key: Node) -> re.Match[str]:
    """Find the reference that stands as a value, such as `*base`."""
    found = re.compile(r"\s*:\s*(\*[^\s,\]}]+)").match(text, key.end_mark.index)
    if found is None:
        msg = "the reference in its value can't be found"
        raise CannotEditError(msg)
    return found


def empty(text: str, key: Node) -> int:
    """Return where a value would stand that is left out."""
    colon = re.compile(r"\s*:").match(text, key.end_mark.index)
    return colon.end() if colon else int(key.end_mark.index)
