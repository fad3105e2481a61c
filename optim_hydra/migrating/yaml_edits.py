"""Edit the items of one mapping in a YAML text, and leave every other byte alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.nodes import CollectionNode, MappingNode, Node

from optim_hydra.migrating.edits import CannotEditError, Edit, value_text
from optim_hydra.rewriting import SAME

__all__ = ["Change", "Items", "change_edits"]

Items = list[tuple[str, Any]]
"""What stands in the place of one item; none: the item goes."""


@dataclass
class Change:
    """Other items for a mapping that ruamel.yaml composed."""

    mapping: MappingNode
    by_number: dict[int, Items] = field(default_factory=dict)
    """By number of the item in whose place they come."""
    added: Items = field(default_factory=list)
    """Those that come before the first item."""


def change_edits(text: str, change: Change) -> list[Edit]:
    """Return the edits that put other items in the place of some.

    Args:
        text: In which the mapping was found.
        change: What to put there.

    Raises:
        CannotEditError: Not without a change elsewhere, or the loss of a comment.

    """
    mapping, added = change.mapping, change.added
    pairs = mapping.value
    edits: list[Edit] = []
    for number, new in change.by_number.items():
        if new:
            edits += _replaced(text, mapping, pairs[number], new)
    gone = [number for number, new in change.by_number.items() if not new]
    for number in gone:
        if pairs[number][1].anchor and not _is_alias(*pairs[number]):
            msg = "its value has an anchor, which others may use"
            raise CannotEditError(msg)
    if gone:
        delete = _deleted_in_flow if mapping.flow_style else _deleted_in_block
        edits += delete(text, mapping, sorted(gone), is_filled=bool(added))
    if added and pairs:
        start = pairs[0][0].start_mark.index
        lines = [f"{key}: {value_text(value)}" for key, value in added]
        edits.append(Edit(start, start, _joined(text, mapping, pairs[0][0], lines)))
    return edits


def _value_end(text: str, key: Node, value: Node) -> int:
    """Return where a value ends, without the comments and lines after it."""
    if _is_alias(key, value):
        return _alias(text, key).end()
    if value.start_mark.index == value.end_mark.index:
        return _empty(text, key)
    if not isinstance(value, CollectionNode) or value.flow_style or not value.value:
        return int(value.end_mark.index)
    last = value.value[-1]
    pair = last if isinstance(last, tuple) else (key, last)
    return _value_end(text, *pair)


def _is_alias(key: Node, value: Node) -> bool:
    return bool(value.start_mark.index < key.start_mark.index)


def _alias(text: str, key: Node) -> re.Match[str]:
    found = re.compile(r"\s*:\s*(\*[^\s,\]}]+)").match(text, key.end_mark.index)
    if found is None:
        msg = "the reference in its value can't be found"
        raise CannotEditError(msg)
    return found


def _empty(text: str, key: Node) -> int:
    """Return where a value would stand that is left out."""
    colon = re.compile(r"\s*:").match(text, key.end_mark.index)
    return colon.end() if colon else int(key.end_mark.index)


def _joined(text: str, mapping: MappingNode, key: Node, items: list[str]) -> str:
    """Join items so that the key after them stays where it is."""
    if mapping.flow_style:
        return "".join(f"{item}, " for item in items)
    newline = "\r\n" if "\r\n" in text else "\n"
    return "".join(f"{item}{newline}{' ' * key.start_mark.column}" for item in items)


def _replaced(
    text: str, mapping: MappingNode, pair: tuple[Node, Node], new: Items
) -> list[Edit]:
    key, value = pair
    *before, (last, last_value) = sorted(new, key=lambda item: item[1] is SAME)
    start, end = key.start_mark.index, key.end_mark.index
    written = text[start:end]
    quote = written[0] if written[0] in "'\"" else ""
    lines = [f"{name}: {value_text(held)}" for name, held in before]
    head = _joined(text, mapping, key, lines)
    edits = [Edit(start, end, f"{head}{quote}{last}{quote}")]
    if last_value is SAME:
        return edits
    if _is_alias(key, value):
        found = _alias(text, key)
        edits.append(Edit(found.start(1), found.end(1), value_text(last_value)))
    elif value.anchor:
        msg = "its value has an anchor, which others may use"
        raise CannotEditError(msg)
    elif not isinstance(value, CollectionNode) or value.flow_style:
        at, stop = value.start_mark.index, value.end_mark.index
        space = ""
        if at == stop:
            at = stop = _empty(text, key)
            space = " " if text[at - 1] == ":" else ": "
        edits.append(Edit(at, stop, f"{space}{value_text(last_value)}"))
    else:
        msg = "its value is a block of several lines"
        raise CannotEditError(msg)
    return edits


def _deleted_in_flow(
    text: str, mapping: MappingNode, gone: list[int], *, is_filled: bool
) -> list[Edit]:
    pairs = mapping.value
    kept = [number for number in range(len(pairs)) if number not in gone]
    end = _value_end(text, *pairs[-1])
    if not kept:
        edits = [Edit(pairs[0][0].start_mark.index, end, "")]
    else:
        last = kept[-1]
        edits = [
            Edit(pairs[n][0].start_mark.index, pairs[n + 1][0].start_mark.index, "")
            for n in gone
            if n < last
        ]
        if last < len(pairs) - 1:
            edits.append(Edit(_value_end(text, *pairs[last]), end, ""))
    if any("#" in text[edit.start : edit.end] for edit in edits) or (
        is_filled and not kept
    ):
        msg = "a comment stands beside it"
        raise CannotEditError(msg)
    return edits


def _deleted_in_block(
    text: str, mapping: MappingNode, gone: list[int], *, is_filled: bool
) -> list[Edit]:
    pairs = mapping.value
    is_empty = len(gone) == len(pairs)
    edits = []
    for number in gone:
        key, value = pairs[number]
        start, end = key.start_mark.index, _value_end(text, key, value)
        if is_empty and number == 0:
            if is_filled:
                msg = "nothing would be left beside what is added"
                raise CannotEditError(msg)
            edits.append(Edit(start, end, "{}"))
            continue
        edits.append(_deleted_line(text, pairs, number, start, end))
    return edits


def _deleted_line(
    text: str, pairs: list[tuple[Node, Node]], number: int, start: int, end: int
) -> Edit:
    line = text.rfind("\n", 0, start) + 1
    rest = re.compile(r"[^\n]*\n?").match(text, end)
    after = rest.group() if rest else ""
    if text[line:start].strip():  # after the dash of a list
        follower = pairs[number + 1][0].start_mark.index
        if "#" in text[end:follower]:
            msg = "a comment stands beside it"
            raise CannotEditError(msg)
        return Edit(start, follower, "")
    comment = after.find("#")
    if comment >= 0:
        return Edit(start, end + comment, "")
    if not after.endswith("\n") and line:  # the last one of a file without a last break
        line -= 2 if text[:line].endswith("\r\n") else 1
    return Edit(line, end + len(after), "")
