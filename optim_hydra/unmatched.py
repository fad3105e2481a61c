"""Say what is wrong with rules that no parameter, or too few, fall under."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from optim_hydra.errors import Problems, closest, join_key, nearest
from optim_hydra.matching import NO_RULE, Matches, Roles, match_rules
from optim_hydra.schema_groups import MATCHERS
from optim_hydra.survey import Entry

__all__ = ["check_matches", "listed", "names_like"]

KEY = "param_groups"
_SHOWN = 3
_COMPARED = 2000


def check_matches(
    entries: Sequence[Entry],
    rules: Sequence[dict[str, Any]],
    roles: Roles,
    matches: Matches,
    problems: Problems,
) -> list[str]:
    """Note each rule that fewer parameters fall under than it expects.

    Returns:
        Sentences about rules that match frozen parameters only.

    """
    counts = Counter(matches.rule_of)
    for entry, number in zip(entries, matches.rule_of, strict=True):
        if not entry.parameter.requires_grad and not _freezes(rules, number):
            counts[number] -= 1
    warnings = []
    for number, rule in enumerate(rules):
        expected = rule.get("expect", 1)
        if counts[number] >= expected:
            continue
        at = f"{KEY}[{number}]"
        alone = match_rules(entries, [rule], roles).rule_of
        pairs = zip(entries, alone, strict=True)
        hits = [entry for entry, found in pairs if found != NO_RULE]
        trainable = [entry for entry in hits if entry.parameter.requires_grad]
        tied = [torn for torn in matches.torn if torn.other == number]
        if tied and expected == 1:
            continue  # `placing` says so, where the two rules differ
        if hits and not trainable and expected == 1:
            names = listed([entry.name for entry in hits])
            text = f"the rule matches frozen parameters only ({names})"
            warnings.append(f"{text} @ {join_key(problems.at, at)}")
            continue
        if len(trainable) > counts[number]:
            taking = zip(entries, alone, matches.rule_of, strict=True)
            first = next(
                other
                for entry, found, other in taking
                if entry.parameter.requires_grad
                and found != NO_RULE
                and other != number
            )
            num_taken = len(trainable) - counts[number]
            share = f"{num_taken} of" if counts[number] else "all of"
            what = (
                f"{share} the parameters that it matches"
                f" ({listed([entry.name for entry in trainable])}) fall under"
                f" {KEY}[{first}] already: move this rule up"
            )
        else:
            what = f"{_described(rule)} matches {len(trainable) or 'no'} parameter"
            what += "s" if len(trainable) > 1 else ""
            if not hits:
                what += _near(entries, rule, roles)
        if expected > 1:
            what += f" (expect: {expected})"
        problems.add(what, at)
    return warnings


def _freezes(rules: Sequence[dict[str, Any]], number: int) -> bool:
    return number != NO_RULE and "freeze" in rules[number]


def _described(rule: dict[str, Any]) -> str:
    said = [f"{name} {rule[name]!r}" for name in MATCHERS if name in rule]
    return " with ".join(said).replace("['", "'").replace("']", "'")


def _near(entries: Sequence[Entry], rule: dict[str, Any], roles: Roles) -> str:
    if "pattern" in rule or "regex" in rule:
        names = [alias.name for entry in entries for alias in entry.aliases]
        return names_like(rule.get("pattern") or rule["regex"], names)
    if "module_type" in rule:
        types = sorted({type(a.owner).__name__ for e in entries for a in e.aliases})
        near = nearest(rule["module_type"], types)
        return near or f" (modules here are {', '.join(types)})"
    if "role" in rule:
        found = sorted({role for roles_ in roles.values() for role in roles_})
        tied = [e.aliases for e in entries if len(e.aliases) > 1] if entries else []
        hint = ""
        if "head" in rule["role"] and tied:
            hint = f"; {tied[0][1].name} is tied to {tied[0][0].name}"
        return f" (roles here are {', '.join(found)}{hint})"
    dimensions = sorted({entry.parameter.ndim for entry in entries})
    return f" (parameters here have {', '.join(map(str, dimensions))} dimensions)"


def names_like(pattern: str, names: Sequence[str]) -> str:
    """Return the names nearest to a glob or regular expression, else the first few."""
    plain = re.sub(r"[^\w.]|\\", "", pattern).strip(".")
    below = [name for name in names if name.startswith(f"{pattern}.")]
    if below:
        return f": it is a module, write {pattern}.* ({listed(below)})"
    if re.search(r"^\.\*|[$^\\|(]", pattern) and _finds(pattern, names):
        return ": it is a regular expression, write regex"
    # A pattern may name a module: `head.*` is nearest to `heads`, and has its names.
    by_text = {name: name for name in names[:_COMPARED]}
    for name in names[:_COMPARED]:
        for end in (at for at, letter in enumerate(name) if letter == "."):
            by_text.setdefault(name[:end], name)
    near = dict.fromkeys(by_text[text] for text in closest(plain, by_text))
    if near and plain not in by_text:
        return f": did you mean {', '.join(near)}?"
    return f" (names here are {listed(list(names))})"


def _finds(pattern: str, names: Sequence[str]) -> bool:
    try:
        found = re.compile(pattern)
    except re.error:
        return False
    return any(found.search(name) for name in names)


def listed(names: Sequence[str], shown: int = _SHOWN) -> str:
    """Return the first few names and the number of the others."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
