"""Convert the items of one node: renamed keys of ours, and nodes of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optim_hydra.dialects import DIALECTS
from optim_hydra.field_checks import CHECKS
from optim_hydra.foreign_keys import FOREIGN_KEYS, FOREIGN_ROWS
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.rewriting import SAME, Outcome, Rewriting

__all__ = ["convert_items"]

_OWNER_SOURCES = {
    "Megatron": "megatron",
    "VeOmni": "veomni",
    "torchtitan": "torchtitan",
    "NeMo Automodel": "verl",
}


def convert_items(
    items: Mapping[str, Any],
    dialect: str = "",
    *,
    whole: bool = False,
    typed: bool = False,
) -> dict[str, Outcome]:
    """Say what becomes of the items of one node; those not named stay as they are.

    Args:
        items: By key, nested ones under dotted paths; see `rewriting.flat`.
        dialect: One of `DIALECTS`; none: only our own renamed keys.
        whole: Whether these are all items of the node.
        typed: Whether they are overrides, of which none is there as a default only.

    """
    node = Rewriting(items, whole, typed)
    _rename_ours(node)
    known = DIALECTS.get(dialect)
    if known is not None and known.owner:
        _by_table(node, known.owner)
    for key in items:
        row = FOREIGN_KEYS.get(key)
        if row is not None and (known is None or not _has_row(key, known.owner)):
            source = _OWNER_SOURCES[row.owner]
            node.asks(key, f"{row.advice(items)} (or let --from {source} convert it)")
    if known is not None:
        known.convert(node)
        if not whole:
            _ask_of_others(node, known.owner)
    return node.settle()


def _ask_of_others(node: Rewriting, owner: str) -> None:
    """Ask about keys that some library has, and neither this one nor we."""
    for row in FOREIGN_ROWS:
        key = row.key
        is_known = key in CHECKS or key in node.outcomes or _has_row(key, owner)
        if key not in node or is_known:
            continue
        if row.owner == "others":
            node.asks(key, f"{key} is not known: write {row.instead}")
        else:
            node.asks(key, row.advice(node.items))


def _rename_ours(node: Rewriting) -> None:
    for old, renamed in RENAMED_KEYS.items():
        if old not in node:
            continue
        spellings = [renamed.new, *RENAMED_KEYS]
        others = [
            key
            for key in node.items
            if key != old
            and key in spellings
            and (key == renamed.new or RENAMED_KEYS[key].new == renamed.new)
        ]
        if node.items[old] is None and (others or not renamed.null_is_a_value):
            node.goes(old)  # verl ships old keys as null placeholders
        else:
            node.becomes(old, (renamed.new, SAME))


def _has_row(key: str, owner: str) -> bool:
    return any(row.key == key and row.owner == owner for row in FOREIGN_ROWS)


def _by_table(node: Rewriting, owner: str) -> None:
    """Convert what the table alone decides: names, shares of lr, neutral values."""
    for row in FOREIGN_ROWS:
        if row.owner != owner or row.key not in node:
            continue
        value = node.items[row.key]
        if row.neutral and any(_is(value, neutral) for neutral in row.neutral):
            node.goes(row.key)
        elif row.renames:
            node.becomes(row.key, (row.instead, SAME))
        elif row.absolute_rate:
            node.share(row.key, row.instead)
        else:
            node.asks(row.key, row.advice(node.items))


def _is(value: Any, neutral: Any) -> bool:
    return (type(value) is type(neutral) and value == neutral) or (
        not isinstance(neutral, bool)
        and isinstance(neutral, (int, float, str))
        and not isinstance(value, bool)
        and str(value) == str(neutral)
    )
