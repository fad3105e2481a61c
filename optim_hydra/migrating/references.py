"""Find the references to keys of optimizer nodes: `${actor.optim.warmup_style}`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from optim_hydra.rewriting import EXTRA
from optim_hydra.tree import NODE_NAME

__all__ = ["Reference", "references_below", "references_in"]

_KEY = re.compile(r"(?<![\w.$}\]-])(\.*)((?:\w+\.)*)(\w+)(?![\w.({\[])")


@dataclass(frozen=True)
class Reference:
    """A key that is named in a `${...}`, and the node that has it."""

    start: int
    end: int
    """Of the key alone, without what leads to it."""
    at: str
    key: str


def references_in(text: str) -> list[Reference]:
    """Return the references that a text of any kind makes from the root of a config."""
    return list(_references(text, 0, len(text), None))


def references_below(root: Node, at: str, text: str) -> list[Reference]:
    """Return the references of a YAML document, also those from where they stand.

    Args:
        root: Of the document.
        at: Its full key.
        text: The whole file.

    """
    found: dict[int, Reference] = {}
    for within, node in _scalars(root, tuple(at.split(".")) if at else ()):
        start, end = node.start_mark.index, node.end_mark.index
        for reference in _references(text, start, end, within):
            found.setdefault(reference.start, reference)
    return list(found.values())


def _scalars(
    node: Node, within: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ScalarNode]]:
    """Yield each scalar that is a value, with the path of what it stands in."""
    pairs: list[tuple[str, Node]] = []
    if isinstance(node, MappingNode):
        pairs = [
            (key.value if isinstance(key, ScalarNode) else "", value)
            for key, value in node.value
        ]
    elif isinstance(node, SequenceNode):
        pairs = [(str(number), value) for number, value in enumerate(node.value)]
    for key, value in pairs:
        if isinstance(value, ScalarNode):
            yield within, value
        else:
            yield from _scalars(value, (*within, key))


def _references(
    text: str, start: int, end: int, within: tuple[str, ...] | None
) -> Iterator[Reference]:
    for begin, stop in _insides(text, start, end):
        for match in _KEY.finditer(text, begin, stop):
            dots, path, key = match.groups()
            names = path.split(".")[:-1]
            if dots and within is None:
                continue  # who knows where it stands
            if dots:
                up = len(dots) - 1
                names = [*(within or ())[: -up or None], *names]
            at_key = match.start(3)
            if names[-1:] == [EXTRA]:
                names.pop()
                key = f"{EXTRA}.{key}"
                at_key -= len(EXTRA) + 1
            if NODE_NAME in names:
                yield Reference(at_key, match.end(3), ".".join(names), key)


def _insides(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches that stand inside of `${...}`, at any depth."""
    depth, begin = 0, start
    for match in re.compile(r"\$\{|[{}]").finditer(text, start, end):
        if depth:
            yield begin, match.start()
        is_opening = match.group() == "${" or (depth and match.group() == "{")
        depth = max(depth + 1 if is_opening else depth - 1, 0)
        begin = match.end()
