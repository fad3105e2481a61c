"""Turn a whole node of another library into one of ours, or say what has no equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import DIALECTS, Dialect, dialect_of
from optim_hydra.errors import MigrationError, Problems
from optim_hydra.foreign_keys import FOREIGN_ROWS
from optim_hydra.rewriting import SAME, flat, nested

__all__ = ["convert_whole", "defaults_beside"]


def convert_whole(
    items: Mapping[str, Any], source: str, at: str, target: str = ""
) -> dict[str, Any]:
    """Return the items of a node of ours with the same meaning.

    Args:
        items: All items of the node; what is absent is at that library's default.
        source: One of `dialects.SOURCES`.
        at: Where the node stands.
        target: The dotted path or the name of its config class.

    Raises:
        MigrationError: With every item that has no equal.

    """
    given = flat(items)
    given.pop("_target_", None)
    dialect = dialect_of(source, given, target or str(items.get("_target_") or ""))
    given = {**defaults_beside(DIALECTS[dialect], given), **given}
    outcomes = convert_items(given, dialect, whole=True)
    problems = Problems(at)
    result: dict[str, Any] = {}
    for key, value in given.items():
        outcome = outcomes.get(key)
        if outcome is None:
            result.setdefault(key, value)
        elif outcome.undecided:
            problems.add(outcome.undecided, key, MigrationError)
        else:
            result.update({k: value if v is SAME else v for k, v in outcome.new})
    problems.raise_if_any()
    return nested(result)


def defaults_beside(dialect: Dialect, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what holds where the node says nothing, under their name or ours."""
    ours = {
        row.key: row.instead.partition(":")[0]
        for row in FOREIGN_ROWS
        if row.owner == dialect.owner
    }
    return {
        key: value
        for key, value in dialect.defaults.items()
        if ours.get(key, key) not in given
    }
