"""Tell in which library's words a node is written, and how each is converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.conversion_engines import (
    TITAN_BF16,
    convert_automodel,
    convert_torchtitan,
    convert_veomni,
    convert_verl_torchtitan,
    convert_verl_veomni,
)
from optim_hydra.conversion_megatron import convert_megatron, convert_verl_megatron
from optim_hydra.conversion_transformers import convert_transformers
from optim_hydra.conversion_verl import convert_fsdp
from optim_hydra.foreign_keys import FOREIGN_ROWS, VERL_CLASSES
from optim_hydra.renamed_keys import same_value
from optim_hydra.rewriting import EXTRA, Rewriting
from optim_hydra.schedule import SCHEDULES
from optim_hydra.scheduler_classes import is_class_path
from optim_hydra.tree import is_our_target

__all__ = ["DIALECTS", "SOURCES", "Dialect", "dialect_in_file", "dialect_of"]

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
_OURS_ALONE = {
    "implementation",
    "layer_decay",
    "lr_decay_power",
    "lr_decay_steps_ratio",
    "lr_warmup_init_ratio",
    "no_decay",
    "on_resume",
    "param_groups",
    "strict",
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
    if not found and "name" in items:
        found.add("torchtitan")
    if not found:
        found.add(_CLASS_OWNERS.get(str(items.get("optimizer")), ""))
    return _VERL_OWNERS.get(min(found), "verl.fsdp") if len(found) == 1 else "verl.fsdp"


def dialect_in_file(source: str, items: Mapping[str, Any], target: str = "") -> str:
    """Return which kind of node this is; nothing for one in our own words.

    What was converted is not converted again: many words are the same, and mean less
    here or something else.

    Args:
        source: One of `SOURCES`, or none.
        items: Of the node, flat, or those of them that a command sets.
        target: Its `_target_`, where it has one.

    """
    if not source:
        return ""
    is_ours = is_our_target(target)
    if source == "verl" and not is_ours:
        speaks = target.rpartition(".")[2] in VERL_CLASSES or not (
            _OURS_ALONE & items.keys()
        )
    else:
        speaks = not is_ours and _speaks(source, items)
    if not (speaks or any(map(_owner, items))):
        return ""
    return dialect_of(source, items, target)


def _speaks(source: str, items: Mapping[str, Any]) -> bool:
    """Whether a node has a key or a value of this library."""
    owner = DIALECTS[source].owner
    keys = {row.key for row in FOREIGN_ROWS if row.owner == owner}
    if keys & items.keys():
        return True
    name = items.get("optimizer")
    is_lower = (
        isinstance(name, str) and name.islower() and "optimizer_impl" not in items
    )
    if source == "transformers":
        schedule = items.get("lr_scheduler_type")
        is_ours = schedule in SCHEDULES or is_class_path(str(schedule))
        return isinstance(schedule, str) and not is_ours
    if source == "torchtitan":
        return items.get("implementation") == TITAN_BF16
    is_off = source == "megatron" and same_value(items.get("clip_grad"), 0.0)
    has_style = "lr_decay_style" in items and "lr_scheduler_type" not in items
    return is_lower or is_off or has_style


def _owner(key: str) -> str:
    """Return who alone has this key, or nothing."""
    name = key.removeprefix(f"{EXTRA}.")
    owners = {row.owner for row in FOREIGN_ROWS if row.key == name and not row.common}
    return owners.pop() if len(owners) == 1 else ""
