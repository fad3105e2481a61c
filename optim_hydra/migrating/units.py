"""Keep what was found of each node, for the checks that need all files of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optim_hydra.rewriting import SAME, Outcome

__all__ = ["Unit", "converted"]


@dataclass(frozen=True)
class Unit:
    """A node in a file, or what one command sets of a node."""

    start: int
    """Where it begins in the text: the first of its items."""
    at: str
    """Its full key, as far as the file tells."""
    items: Mapping[str, Any]
    """As they are written, flat."""
    dialect: str
    outcomes: Mapping[str, Outcome]
    edited: frozenset[str] = frozenset()
    """Keys of a file that become others: none while the node waits."""
    is_command: bool = False
    is_whole: bool = False
    """Whether it names a class or is a file of a group, which others build on."""
    changed: frozenset[str] = frozenset()
    """Keys that Hydra sets where they are, and refuses elsewhere."""
    added: frozenset[str] = frozenset()
    """Keys that Hydra refuses where they are."""

    @property
    def is_undecided(self) -> bool:
        """Whether something in it is a question."""
        return any(outcome.undecided for outcome in self.outcomes.values())


def converted(
    items: Mapping[str, Any], outcomes: Mapping[str, Outcome]
) -> dict[str, Any]:
    """Return the items that come of some, flat."""
    result: dict[str, Any] = {}
    for key, value in items.items():
        outcome = outcomes.get(key)
        if outcome is None:
            result.setdefault(key, value)
        else:
            result.update({k: value if v is SAME else v for k, v in outcome.new})
    return result
