"""Find the names that a glob or a regular expression matches."""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any

__all__ = ["NameIndex"]

_WILD = re.compile(r"[*?\[]")
_WILD_END = re.compile(r"[*?\]]")
# From here on a sorted copy of the names pays, in which each glob looks up its range.
_MANY = 24


class NameIndex:
    """Names, to be asked for those that a pattern matches.

    A thousand globs of the kind `blocks.17.*` cost a look-up each, and not a comparison
    with each name.
    """

    def __init__(self, names: Sequence[str], num_patterns: int) -> None:
        """Take the names, and how many patterns they will be compared with."""
        self._names = names
        self._is_sorted = num_patterns >= _MANY

    def matching(self, pattern: str | None, regex: str | None = None) -> list[int]:
        """Return the positions of the names that both match; None matches all.

        Args:
            pattern: A glob for the whole name, in which `*` takes dots too.
            regex: A regular expression to be found in it.

        """
        names = self._names
        found = range(len(names)) if pattern is None else self._globbed(pattern)
        if regex is None:
            return list(found)
        search = re.compile(regex).search
        return [index for index in found if search(names[index])]

    def _globbed(self, pattern: str) -> Sequence[int]:
        names = self._names
        begin = _WILD.split(pattern, maxsplit=1)[0]
        end = _WILD_END.split(pattern)[-1]
        found = self._with(begin, end)
        if begin == pattern:
            return [index for index in found if names[index] == pattern]
        if f"{begin}*{end}" == pattern:
            least = len(begin) + len(end)
            return [index for index in found if len(names[index]) >= least]
        match = re.compile(fnmatch.translate(pattern)).match
        return [index for index in found if match(names[index])]

    def _with(self, begin: str, end: str) -> list[int]:
        """Return the positions of the names with this beginning and end."""
        names = self._names
        # The longer one of the two first, which fewer have.
        if len(begin) >= len(end):
            if self._is_sorted:
                found = _in_range(self._forward, begin)
            else:
                found = [i for i, name in enumerate(names) if name.startswith(begin)]
            return [i for i in found if names[i].endswith(end)] if end else found
        if self._is_sorted:
            found = _in_range(self._backward, end[::-1])
        else:
            found = [i for i, name in enumerate(names) if name.endswith(end)]
        return [i for i in found if names[i].startswith(begin)] if begin else found

    @cached_property
    def _forward(self) -> list[tuple[str, int]]:
        return sorted((name, index) for index, name in enumerate(self._names))

    @cached_property
    def _backward(self) -> list[tuple[str, int]]:
        return sorted((name[::-1], index) for index, name in enumerate(self._names))


def _in_range(ordered: list[tuple[str, int]], begin: str) -> list[int]:
    """Return the positions of the sorted names that begin with a text."""

    def beginning(item: tuple[Any, int]) -> Any:
        return item[0][: len(begin)]

    first = bisect_left(ordered, begin, key=beginning)
    last = bisect_right(ordered, begin, lo=first, key=beginning)
    return [index for _, index in ordered[first:last]]
