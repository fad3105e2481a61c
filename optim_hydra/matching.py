"""Decide which rule each parameter falls under: the first whose matchers all hold."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from optim_hydra.name_index import NameIndex
from optim_hydra.survey import Alias, Entry

__all__ = ["NO_RULE", "Matches", "Roles", "Torn", "match_rules"]

Rule = dict[str, Any]
Roles = Mapping[int, frozenset[str]]
NO_RULE = -1
# What a rule can ask for beside the name.
_KINDS = frozenset({"module_type", "ndim", "min_ndim", "role"})


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

    rule_of: list[int]
    """The number of the rule of each entry; -1 under no rule."""
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
    if not rules:
        return Matches([NO_RULE] * len(entries), [])
    matcher = _Matcher(entries, rules, roles)
    firsts = matcher.firsts()
    rule_of, torn = firsts[: len(entries)], []
    names = {index: [index] for index, entry in enumerate(entries) if entry.others}
    for position, (index, _) in enumerate(matcher.others, start=len(entries)):
        names[index].append(position)
    for index, positions in names.items():
        alias_at = dict(zip(positions, entries[index].aliases, strict=True))
        hits = [(firsts[at], at) for at in positions if firsts[at] != NO_RULE]
        if not hits:
            continue
        first, own = min(hits)
        rule_of[index] = first
        for other, at in hits:
            if other != first and not matcher.has(other, own):
                torn.append(Torn(alias_at[own], first, alias_at[at], other))
                break
    return Matches(rule_of, torn)


class _Matcher:
    """Rules, and every name of every parameter by its position: the first ones first.

    Each rule is asked for all of its names, which is quicker than to ask all rules for
    each name.
    """

    def __init__(
        self, entries: Sequence[Entry], rules: Sequence[Rule], roles: Roles
    ) -> None:
        self._entries = entries
        self._rules = rules
        self._roles = roles
        self.others = [(i, a) for i, e in enumerate(entries) for a in e.others]
        names = [entry.name for entry in entries]
        names += [alias.name for _, alias in self.others]
        self._num_names = len(names)
        self._index = NameIndex(names, len(rules))
        self._known: dict[int, set[int]] = {}

    def firsts(self) -> list[int]:
        """Return the first rule of each name."""
        firsts = [NO_RULE] * self._num_names
        for number in range(len(self._rules)):
            for position in self._hits(number):
                if firsts[position] == NO_RULE:
                    firsts[position] = number
        return firsts

    def has(self, number: int, position: int) -> bool:
        """Whether a rule holds for the name at a position."""
        if number not in self._known:
            self._known[number] = set(self._hits(number))
        return position in self._known[number]

    def _hits(self, number: int) -> list[int]:
        """Return the positions of all names for which a rule holds."""
        rule = self._rules[number]
        pattern, regex = rule.get("pattern"), rule.get("regex")
        is_named = pattern is not None or regex is not None
        if _KINDS.isdisjoint(rule):
            return self._index.matching(pattern, regex)
        holding = [kind for kind in self._by_kind if _holds(rule, *kind)]
        if not is_named:
            return [position for kind in holding for position in self._by_kind[kind]]
        among = {position for kind in holding for position in self._by_kind[kind]}
        return [i for i in self._index.matching(pattern, regex) if i in among]

    @cached_property
    def _by_kind(self) -> dict[tuple[type, int, frozenset[str]], list[int]]:
        """Positions by the class of the owner, the dimensions and the roles."""
        nothing: frozenset[str] = frozenset()
        get, by_kind = self._roles.get, defaultdict(list)
        owned = [(entry.owner, entry.parameter) for entry in self._entries]
        owned += [(a.owner, self._entries[i].parameter) for i, a in self.others]
        for position, (owner, parameter) in enumerate(owned):
            kind = (type(owner), parameter.ndim, get(id(parameter), nothing))
            by_kind[kind].append(position)
        return by_kind


def _holds(rule: Rule, cls: type, ndim: int, roles: frozenset[str]) -> bool:
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
