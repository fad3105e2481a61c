"""Take words apart into what may be one override each: quotes hold one or several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optim_hydra.migrating.shell_words import Word

__all__ = ["Piece", "parts_of", "pieces_of"]

_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_BEFORE_ASSIGNMENT = ("export", "local", "declare", "readonly", "env", "typeset")
_OVERRIDE = re.compile(r"(\+\+|\+|~)?[\w.@/\[\]-]+=")


@dataclass(frozen=True)
class Piece:
    """A stretch of text without blanks outside its own brackets and quotes."""

    start: int
    end: int
    text: str
    outer: tuple[int, int]
    """What is replaced or removed with it: its quotes too, where they hold it alone."""
    quote: str
    """The quote around it; empty where there is none."""
    is_alone: bool
    """Whether nothing else stands in its word."""
    is_formatted: bool = False
    """Whether braces in it hold code, as in Python's f-strings."""


def pieces_of(words: Sequence[Word]) -> Iterator[Piece]:
    """Yield the pieces of one command's words."""
    may_assign = True
    for word in words:
        assigned = _ASSIGNED.match(word.text) if may_assign else None
        may_assign = assigned is not None or word.text in _BEFORE_ASSIGNMENT
        if assigned:
            inner = word.text[assigned.end() :]
            start = word.start + assigned.end()
            if inner:
                yield from _inside(Word(start, word.end, inner), is_value=True)
        else:
            yield from _inside(word, is_value=False)


def _inside(word: Word, *, is_value: bool) -> Iterator[Piece]:
    quote = word.text[:1] if word.text[:1] in "'\"" else ""
    if not (
        quote and len(word.text) > 1 and word.text.find(quote, 1) == len(word.text) - 1
    ):
        outer = (word.start, word.end)
        yield Piece(word.start, word.end, word.text, outer, "", not is_value)
        return
    parts = parts_of(word.text[1:-1], word.start + 1, is_list=is_value)
    for start, end, text in parts:
        is_one = len(parts) == 1
        outer = (word.start, word.end) if is_one else (start, end)
        yield Piece(start, end, text, outer, quote, is_one and not is_value)


def parts_of(
    text: str, offset: int, *, is_list: bool = False
) -> list[tuple[int, int, str]]:
    """Return the places and texts of what one quoted text holds: one or several.

    Args:
        text: Without its quotes.
        offset: Where it begins.
        is_list: Whether blanks separate whatever stands in it, as in a variable.

    """
    parts = list(_split(text, offset))
    are_overrides = [bool(_OVERRIDE.match(part)) for _, _, part in parts]
    is_one = not is_list and any(are_overrides[:1]) and not all(are_overrides)
    if is_one or len(parts) < 2:  # noqa: PLR2004 - one is not several
        return [(offset, offset + len(text), text)]
    return parts


def _split(text: str, offset: int) -> Iterator[tuple[int, int, str]]:
    """Split at blanks that stand outside brackets and quotes."""
    depth, quote, begin = 0, "", -1
    for index, char in enumerate(f"{text} "):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth = max(depth - 1, 0)
        is_blank = char in " \t\r\n\\" and depth == 0 and not quote
        if is_blank and begin >= 0:
            yield offset + begin, offset + index, text[begin:index]
            begin = -1
        elif not is_blank and begin < 0:
            begin = index
    if begin >= 0:
        yield offset + begin, offset + len(text), text[begin:]
