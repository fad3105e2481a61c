"""Tell which keys of another library's optimizer node are keys of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_of
from optim_hydra.errors import Problems, nearest
from optim_hydra.field_checks import CHECKS
from optim_hydra.foreign_keys import FOREIGN_KEYS, OTHER_NAMES, VERL_CLASSES
from optim_hydra.node import Node
from optim_hydra.planning import plan_node
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.rewriting import SAME, Outcome, flat

__all__ = ["ForeignNode", "KeyMeaning", "read_foreign"]


@dataclass(frozen=True)
class KeyMeaning:
    """One key of the node, and ours for it."""

    key: str
    value: Any
    ours: str
    """The field of ours; empty where there is none of the same meaning."""
    advice: str = ""
    """A sentence that says what to write instead, where there is none."""


@dataclass(frozen=True)
class ForeignNode:
    """What its keys mean here, and what of its values this library would refuse."""

    target: str
    keys: list[KeyMeaning]
    refused: list[str]


def read_foreign(items: Mapping[str, Any], at: str) -> ForeignNode:
    """Look each key of a node up, and check the values under those that are ours.

    The keys of a node that names one of verl's classes mean what `migrate --from verl`
    makes of them.
    """
    target = str(items.get("_target_", "mapping"))
    given = {key: value for key, value in items.items() if key[:1] != "_"}
    outcomes: dict[str, Outcome] = {}
    if target.rpartition(".")[2] in VERL_CLASSES:
        dialect = dialect_of("verl", given, target)
        outcomes = convert_items(flat(given), dialect)
    meanings = [_meaning(key, given, outcomes.get(key)) for key in given]
    ours = {m.key: m.value for m in meanings if m.ours == m.key}
    problems = Problems(at)
    plan_node(Node(ours, at), problems, allow_open=True)
    return ForeignNode(target, meanings, list(map(str, problems.found)))


def _meaning(key: str, items: Mapping[str, Any], outcome: Outcome | None) -> KeyMeaning:
    """Tell whether a key is the same in ours, renamed, another word, or nothing."""
    value = items[key]
    if outcome is None and key in CHECKS:
        return KeyMeaning(key, value, key)
    if key in RENAMED_KEYS:
        return KeyMeaning(key, value, RENAMED_KEYS[key].new)
    if outcome is not None and not outcome.undecided:
        return _converted(key, value, outcome)
    return KeyMeaning(key, value, "", _advice(key, items, outcome))


def _advice(key: str, items: Mapping[str, Any], outcome: Outcome | None) -> str:
    """Say what to write for a key of which no value of ours follows."""
    why = outcome.undecided if outcome is not None else ""
    advice = FOREIGN_KEYS[key].advice(items) if key in FOREIGN_KEYS else ""
    if advice and (not why or why.startswith(advice)):
        return advice
    if key in OTHER_NAMES:
        return f"{key} is not known: write {OTHER_NAMES[key]}"
    if why:
        return f"{key}: {why}"
    near = nearest(key, [name for name in CHECKS if not name.startswith("_")])
    hint = near or ": an argument of the class goes into override_optimizer_config"
    return f"{key} is not known{hint}"


def _converted(key: str, value: Any, outcome: Outcome) -> KeyMeaning:
    if not outcome.new:
        return KeyMeaning(key, value, "", f"{key}: {value} changes nothing: remove it")
    if [held for _, held in outcome.new] == [SAME]:
        return KeyMeaning(key, value, outcome.new[0][0])
    texts = [f"{name}: {value if v is SAME else v}" for name, v in outcome.new]
    return KeyMeaning(key, value, "", f"{key}: {value} is our {', '.join(texts)}")
