"""Tell which keys of another library's optimizer node are keys of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optim_hydra.errors import Problems, nearest
from optim_hydra.foreign_keys import FOREIGN_KEYS, OTHER_NAMES
from optim_hydra.node import Node
from optim_hydra.planning import plan_node
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.schema import CHECKS

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
    """Look each key of a node up, and check the values under those that are ours."""
    meanings = [
        _meaning(key, value, items) for key, value in items.items() if key[:1] != "_"
    ]
    ours = {m.key: m.value for m in meanings if m.ours == m.key}
    problems = Problems(at)
    plan_node(Node(ours, at), problems, allow_open=True)
    target = str(items.get("_target_", "mapping"))
    return ForeignNode(target, meanings, list(map(str, problems.found)))


def _meaning(key: str, value: Any, items: Mapping[str, Any]) -> KeyMeaning:
    """Tell whether a key is the same in ours, renamed, another word, or nothing."""
    if key in CHECKS:
        return KeyMeaning(key, value, key)
    if key in RENAMED_KEYS:
        return KeyMeaning(key, value, RENAMED_KEYS[key].new)
    if key in FOREIGN_KEYS:
        return KeyMeaning(key, value, "", FOREIGN_KEYS[key].advice(items))
    if key in OTHER_NAMES:
        return KeyMeaning(
            key, value, "", f"{key} is not known: write {OTHER_NAMES[key]}"
        )
    near = nearest(key, [name for name in CHECKS if not name.startswith("_")])
    hint = near or ": an argument of the class goes into override_optimizer_config"
    return KeyMeaning(key, value, "", f"{key} is not known{hint}")
