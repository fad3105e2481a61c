"""Remember, beside an optimizer, which rule each of its groups comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch.optim import Optimizer

from optim_hydra.groups import ClassGroups

__all__ = ["GroupRecord", "record_groups", "records_of"]

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


def records_of(optimizer: Optimizer) -> list[GroupRecord]:
    """Return one record for each group, empty ones where nothing was kept."""
    inner = getattr(optimizer, "optimizers", None)
    if inner is not None:
        return [record for each in inner for record in records_of(each)]
    known: list[GroupRecord] = vars(optimizer).get(_ATTRIBUTE, [])
    num_others = len(optimizer.param_groups) - len(known)
    return [*known, *(GroupRecord() for _ in range(num_others))]
