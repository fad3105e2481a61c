"""Edit the items of one mapping in a YAML text, and leave every other byte alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.nodes import CollectionNode, MappingNode, Node

from optim_hydra.migrating.edits import CannotEditError, Edit, value_text
from optim_hydra.migrating.yaml_deletions import deleted_in_block, deleted_in_flow
from optim_hydra.migrating.yaml_places import alias, empty, is_alias
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
        if pairs[number][1].anchor and not is_alias(*pairs[number]):
            raise CannotEditError(_anchored(text, pairs[number][1].anchor))
    if gone:
        delete = deleted_in_flow if mapping.flow_style else deleted_in_block
        edits += delete(text, mapping, sorted(gone), is_filled=bool(added))
    if added and pairs:
        start = pairs[0][0].start_mark.index
        lines = [f"{key}: {value_text(value)}" for key, value in added]
        edits.append(Edit(start, start, _joined(text, mapping, pairs[0][0], lines)))
    return edits


def _anchored(text: str, name: str) -> str:
    """Say who else uses a value that has a name of YAML's."""
    users = re.finditer(rf"\*{re.escape(name)}(?![\w-])", text)
    lines = [str(text.count("\n", 0, user.start()) + 1) for user in users]
    if not lines:
        return f"its value has a name that nothing uses, &{name}, to be removed first"
    what = f"line {', '.join(lines)} has its value by *{name}"
    return f"{what}, to be written out there first"


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
    if is_alias(key, value):
        found = alias(text, key)
        edits.append(Edit(found.start(1), found.end(1), value_text(last_value)))
    elif value.anchor:
        raise CannotEditError(_anchored(text, value.anchor))
    elif not isinstance(value, CollectionNode) or value.flow_style:
        at, stop = value.start_mark.index, value.end_mark.index
        space = ""
        if at == stop:
            at = stop = empty(text, key)
            space = " " if text[at - 1] == ":" else ": "
        edits.append(Edit(at, stop, f"{space}{value_text(last_value)}"))
    else:
        msg = "its value is a block of several lines"
        raise CannotEditError(msg)
    return edits
