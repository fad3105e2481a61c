"""Decide which rule each parameter falls under: the first whose matchers all hold."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from optim_hydra.name_index import NameIndex
from optim_hydra.survey import Alias, Entry

__all__ = ["Matches", "Roles", "Torn", "match_rules"]

Rule = dict[str, Any]
Roles = Mapping[int, frozenset[str]]


class Torn(NamedTuple):
    """Two names of one tied parameter that fall under two rules."""

    alias: Alias
    first: int
    """The rule that has the parameter."""
    other_alias: Alias
    other: int

    def __str__(self) -> str:
        """Say so, at the place of the other rule."""
        return (
            f"{self.other_alias.name} is tied to {self.alias.name}, which falls under"
            f" param_groups[{self.first}]: let one of the two rules have it"
        )


@dataclass(frozen=True)
class Matches:
    """Which rule has which parameter."""

    rule_of: dict[int, int]
    """`id` of a parameter -> number of its rule; it is missing under no rule."""
    torn: list[Torn]


def match_rules(
    entries: Sequence[Entry], rules: Sequence[Rule], roles: Roles
) -> Matches:
    """Find the first rule of each parameter; one name of a tied one is enough.

    Args:
        entries: The parameters.
        rules: Checked rules, in their order.
        roles: `id` of a parameter -> its roles; needed only where a rule names one.

    """
    matcher = _Matcher(rules, roles)
    rule_of: dict[int, int] = {}
    torn = []
    for entry in entries:
        hits = [(matcher.first(entry, alias), alias) for alias in entry.aliases]
        found = [(rule, alias) for rule, alias in hits if rule is not None]
        if not found:
            continue
        first, alias = min(found, key=lambda hit: hit[0])
        rule_of[id(entry.parameter)] = first
        for other, other_alias in found:
            if other != first and not matcher.has(other, entry, alias):
                torn.append(Torn(alias, first, other_alias, other))
                break
    return Matches(rule_of, torn)


class _Matcher:
    def __init__(self, rules: Sequence[Rule], roles: Roles) -> None:
        self._rules = rules
        self._roles = roles
        self._index = NameIndex(enumerate(rules))
        self._nameless = set(self._index.nameless)
        self._cache: dict[Any, int | None] = {}

    def has(self, number: int, entry: Entry, alias: Alias) -> bool:
        """Whether a rule holds for a parameter under one of its names."""
        roles = self._roles.get(id(entry.parameter), frozenset())
        if not self._holds(number, type(alias.owner), entry.parameter.ndim, roles):
            return False
        return number in self._nameless or number in self._index.matching(alias.name)

    def first(self, entry: Entry, alias: Alias) -> int | None:
        """Return the first rule that holds for a parameter under one of its names."""
        ndim, cls = entry.parameter.ndim, type(alias.owner)
        roles = self._roles.get(id(entry.parameter), frozenset())
        key = (cls, ndim, roles)
        if key not in self._cache:
            holding = (n for n in self._index.nameless if self._holds(n, *key))
            self._cache[key] = next(holding, None)
        first = self._cache[key]
        for number in self._index.matching(alias.name):
            if first is not None and number > first:
                break
            if self._holds(number, *key):
                return number
        return first

    def _holds(self, number: int, cls: type, ndim: int, roles: frozenset[str]) -> bool:
        rule = self._rules[number]
        if "ndim" in rule and ndim != rule["ndim"]:
            return False
        if ndim < rule.get("min_ndim", 0):
            return False
        if "role" in rule and roles.isdisjoint(rule["role"]):
            return False
        return "module_type" not in rule or rule["module_type"] in class_names(cls)


@functools.lru_cache(maxsize=4096)
def class_names(cls: type) -> frozenset[str]:
    """Return the names of a class and of its bases."""
    return frozenset(base.__name__ for base in cls.__mro__)
