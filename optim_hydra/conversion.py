"""Convert the items of one node: renamed keys of ours, and nodes of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.conversion_engines import (
    convert_automodel,
    convert_torchtitan,
    convert_veomni,
    convert_verl_torchtitan,
    convert_verl_veomni,
)
from optim_hydra.conversion_megatron import convert_megatron, convert_verl_megatron
from optim_hydra.conversion_transformers import convert_transformers
from optim_hydra.conversion_verl import convert_fsdp
from optim_hydra.foreign_keys import FOREIGN_KEYS, FOREIGN_ROWS, VERL_CLASSES
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.rewriting import EXTRA, SAME, Outcome, Rewriting

__all__ = ["DIALECTS", "SOURCES", "Dialect", "convert_items", "dialect_of"]

SOURCES = ("verl", "torchtitan", "transformers", "megatron", "veomni")


@dataclass(frozen=True)
class Dialect:
    """How one kind of node is written, and what it means where it says nothing."""

    owner: str
    """Whose rows of the table of foreign keys it uses."""
    convert: Callable[[Rewriting], None]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Of a whole node: those that are not ours."""


_CLIPS = {"clip_grad": 1.0}
DIALECTS: dict[str, Dialect] = {
    "verl.fsdp": Dialect("", convert_fsdp, _CLIPS),
    "verl.megatron": Dialect(
        "Megatron",
        convert_verl_megatron,
        {**_CLIPS, "optimizer": "adam", "lr_decay_style": "linear"},
    ),
    "verl.veomni": Dialect(
        "VeOmni", convert_verl_veomni, {**_CLIPS, "optimizer": "adamw"}
    ),
    "verl.torchtitan": Dialect(
        "torchtitan",
        convert_verl_torchtitan,
        {**_CLIPS, "decay_type": "linear", "eps": 1e-8},
    ),
    "verl.automodel": Dialect(
        "NeMo Automodel",
        convert_automodel,
        {
            **_CLIPS,
            "init_lr_ratio": 0.1,
            "min_lr_ratio": 0.01,
            "lr_scheduler_type": "cosine",
            "eps": 1e-8,
        },
    ),
    "torchtitan": Dialect(
        "torchtitan",
        convert_torchtitan,
        {
            "lr": 8e-4,
            "weight_decay": 0.1,
            "beta1": 0.9,
            "beta2": 0.95,
            "warmup_steps": 200,
            "decay_type": "linear",
            "max_norm": 1.0,
        },
    ),
    "transformers": Dialect(
        "transformers",
        convert_transformers,
        {
            "learning_rate": 5e-5,
            "weight_decay": 0.0,
            "max_grad_norm": 1.0,
            "lr_scheduler_type": "linear",
        },
    ),
    "megatron": Dialect(
        "Megatron",
        convert_megatron,
        {**_CLIPS, "optimizer": "adam", "lr_decay_style": "linear"},
    ),
    "veomni": Dialect("VeOmni", convert_veomni),
}
_VERL_OWNERS = {
    "Megatron": "verl.megatron",
    "VeOmni": "verl.veomni",
    "torchtitan": "verl.torchtitan",
    "NeMo Automodel": "verl.automodel",
}
_OWNER_SOURCES = {
    "Megatron": "megatron",
    "VeOmni": "veomni",
    "torchtitan": "torchtitan",
    "NeMo Automodel": "verl",
}
_CLASS_OWNERS = {"adam": "Megatron", "sgd": "Megatron", "adamw": "VeOmni"}


def dialect_of(source: str, items: Mapping[str, Any], target: str = "") -> str:
    """Return which of a source's kinds of node this is; verl has five.

    Args:
        source: One of `SOURCES`.
        items: Of the node, flat.
        target: The dotted path of its config class, where that is known.

    """
    if source != "verl":
        return source
    by_class = VERL_CLASSES.get(target.rpartition(".")[2])
    if by_class:
        return by_class
    found = {_owner(key) for key in items} - {""}
    if "lr_decay_style" in items and "lr_scheduler_type" not in items:
        found.add("Megatron")
    if not found:
        found.add(_CLASS_OWNERS.get(str(items.get("optimizer")), ""))
    return _VERL_OWNERS.get(min(found), "verl.fsdp") if len(found) == 1 else "verl.fsdp"


def _owner(key: str) -> str:
    """Return who alone has this key, or nothing."""
    name = key.removeprefix(f"{EXTRA}.")
    owners = {row.owner for row in FOREIGN_ROWS if row.key == name and not row.common}
    return owners.pop() if len(owners) == 1 else ""


def convert_items(
    items: Mapping[str, Any], dialect: str = "", *, whole: bool = False
) -> dict[str, Outcome]:
    """Say what becomes of the items of one node; those not named stay as they are.

    Args:
        items: By key, nested ones under dotted paths; see `rewriting.flat`.
        dialect: One of `DIALECTS`; none: only our own renamed keys.
        whole: Whether these are all items of the node.

    """
    node = Rewriting(items, whole)
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
    return node.settle()


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
