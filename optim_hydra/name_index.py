"""Find the rules whose name matchers hold for a name, without asking all of them."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["NameIndex"]

_WILD = re.compile(r"[*?\[]")
_WILD_END = re.compile(r"[*?\]]")


class NameIndex:
    """Rules by what their globs begin or end with, so that few are tried per name.

    A thousand rules of the kind `blocks.17.*` cost one look-up for each length of
    such a beginning, and not a thousand comparisons.
    """

    def __init__(self, rules: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """Read the rules, each with its number; those without a name are nameless."""
        self.nameless: list[int] = []
        self._tests: dict[int, list[Callable[[str], Any]]] = {}
        self._begin: dict[int, dict[str, list[int]]] = defaultdict(dict)
        self._end: dict[int, dict[str, list[int]]] = defaultdict(dict)
        self._anywhere: list[int] = []
        for number, rule in rules:
            glob, regex = rule.get("pattern"), rule.get("regex")
            tests: list[Callable[[str], Any]] = []
            if glob is not None:
                tests.append(re.compile(fnmatch.translate(glob)).match)
            if regex is not None:
                tests.append(re.compile(regex).search)
            if not tests:
                self.nameless.append(number)
                continue
            self._tests[number] = tests
            self._place(number, glob)

    def _place(self, number: int, glob: str | None) -> None:
        begin = _WILD.split(glob, maxsplit=1)[0] if glob else ""
        end = _WILD_END.split(glob)[-1] if glob else ""
        if begin:
            self._begin[len(begin)].setdefault(begin, []).append(number)
        elif end:
            self._end[len(end)].setdefault(end, []).append(number)
        else:
            self._anywhere.append(number)

    def matching(self, name: str) -> list[int]:
        """Return the numbers of the rules with a name that matches, in their order."""
        tried = list(self._anywhere)
        for length, by_text in self._begin.items():
            tried += by_text.get(name[:length], ())
        for length, by_text in self._end.items():
            tried += by_text.get(name[-length:], ())
        return sorted(n for n in tried if all(test(name) for test in self._tests[n]))
