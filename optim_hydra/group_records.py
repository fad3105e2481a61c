"""Remember, beside an optimizer, which rule each of its groups comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch.optim import Optimizer

from optim_hydra.groups import ClassGroups

__all__ = ["GroupRecord", "has_records", "record_groups", "records_of"]

_ATTRIBUTE = "_optim_hydra_groups"


@dataclass(frozen=True)
class GroupRecord:
    """What is known of a group that its dict does not say."""

    rules: tuple[str, ...] = ()
    """Where it is said that it is a group; an empty text for the node itself."""
    schedule: dict[str, Any] = field(default_factory=dict)
    """The schedule fields that its rule sets."""


def record_groups(optimizer: Optimizer, groups: ClassGroups) -> None:
    """Keep the records of a new optimizer; groups added later have none."""
    vars(optimizer)[_ATTRIBUTE] = [
        GroupRecord(tuple(group.rules), group.schedule) for group in groups.groups
    ]


def has_records(optimizer: Optimizer) -> bool:
    """Whether the optimizer was built from a node that groups parameters."""
    inner = getattr(optimizer, "optimizers", [])
    return _ATTRIBUTE in vars(optimizer) or any(map(has_records, inner))


def records_of(optimizer: Optimizer) -> list[GroupRecord]:
    """Return one record for each group, empty ones where nothing was kept."""
    order = getattr(optimizer, "group_order", None)
    if order is not None:
        inner = getattr(optimizer, "_named", {})
        records = {name: records_of(each) for name, each in inner.items()}
        return [records[name][index] for name, index in order()]
    known: list[GroupRecord] = vars(optimizer).get(_ATTRIBUTE, [])
    num_others = len(optimizer.param_groups) - len(known)
    return [*known, *(GroupRecord() for _ in range(num_others))]
