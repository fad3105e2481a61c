"""Take items out of a mapping in a YAML text, with the comments about them alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ruamel.yaml.nodes import MappingNode, Node

from optim_hydra.migrating.edits import CannotEditError, Edit
from optim_hydra.migrating.yaml_places import value_end

__all__ = ["deleted_in_block", "deleted_in_flow"]

_LINE = re.compile(r"[^\n]*\n?")


def deleted_in_flow(
    text: str, mapping: MappingNode, gone: list[int], *, is_filled: bool
) -> list[Edit]:
    """Return the edits that take items out of `{...}`."""
    pairs = mapping.value
    kept = [number for number in range(len(pairs)) if number not in gone]
    end = value_end(text, *pairs[-1])
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
            edits.append(Edit(value_end(text, *pairs[last]), end, ""))
    if any("#" in text[edit.start : edit.end] for edit in edits) or (
        is_filled and not kept
    ):
        msg = "a comment stands beside it"
        raise CannotEditError(msg)
    return edits


def deleted_in_block(
    text: str, mapping: MappingNode, gone: list[int], *, is_filled: bool
) -> list[Edit]:
    """Return the edits that take items out of a mapping of lines.

    A comment above an item goes with it, where it is about nothing that stays: what
    follows the item is an empty line, another comment or the end of the mapping.
    """
    pairs = mapping.value
    if len(gone) == len(pairs):
        if is_filled:
            msg = "nothing would be left beside what is added"
            raise CannotEditError(msg)
        start = pairs[0][0].start_mark.index
        return [Edit(start, value_end(text, *pairs[-1]), "{}")]
    edits = []
    for first, last in _runs(text, pairs, gone):
        start = pairs[first][0].start_mark.index
        end = value_end(text, *pairs[last])
        line = text.rfind("\n", 0, start) + 1
        if text[line:start].strip():  # after the dash of a list
            follower = pairs[last + 1][0].start_mark.index
            if "#" in text[end:follower]:
                msg = "a comment stands beside it"
                raise CannotEditError(msg)
            edits.append(Edit(start, follower, ""))
        else:
            edits.append(_deleted_lines(text, line, end))
    return edits


def _runs(
    text: str, pairs: list[tuple[Node, Node]], gone: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield the first and last of the items that stand on lines next to each other."""
    first = last = gone[0]
    for number in gone[1:]:
        end = _line_end(text, value_end(text, *pairs[last]))
        is_next = not text[end : pairs[number][0].start_mark.index].strip(" ")
        if number != last + 1 or not is_next:
            yield first, last
            first = number
        last = number
    yield first, last


def _deleted_lines(text: str, start: int, end: int) -> Edit:
    """Take out whole lines, with the comments above and an empty line too many."""
    end = _line_end(text, end)
    margin = len(text[start:]) - len(text[start:].lstrip(" "))
    following = _line(text, end)
    indent = len(following) - len(following.lstrip(" "))
    if following.strip()[:1] in ("", "#") or indent < margin:
        while _line(text, above := _line_above(text, start)).strip()[:1] == "#":
            if len(_line(text, above)) - len(_line(text, above).lstrip(" ")) != margin:
                break
            start = above
            if not start:
                break
        is_spaced = not start or not _line(text, _line_above(text, start)).strip()
        if is_spaced and following and not following.strip():
            end = _line_end(text, end)
    if not text[:end].endswith("\n") and start:  # the last one without a last break
        start -= 2 if text[:start].endswith("\r\n") else 1
    return Edit(start, end, "")


def _line(text: str, start: int) -> str:
    found = _LINE.match(text, start)
    return found.group() if found else ""


def _line_end(text: str, at: int) -> int:
    return at + len(_line(text, at))


def _line_above(text: str, start: int) -> int:
    return text.rfind("\n", 0, max(start - 1, 0)) + 1
