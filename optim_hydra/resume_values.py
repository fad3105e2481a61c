"""Compare saved group values with this run's, and plan which of them change."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.argument_values import fit_value
from optim_hydra.differences import SHOWN, Difference, Rows, compare, equal, plain
from optim_hydra.field_checks import CHECKS
from optim_hydra.saved_state import SavedState
from optim_hydra.signature import signature_of
from optim_hydra.state_slots import Slot, arguments_of
from optim_hydra.value_checks import Refused, shown, to_float

__all__ = ["Difference", "Update", "plan_values"]

# They say how the step is computed here, not what it is.
RUNTIME = ("fused", "foreach", "capturable", "differentiable")
_NOT_VALUES = ("params", "param_names", "name")
_DECOUPLED = "decoupled_weight_decay"


@dataclass(frozen=True)
class Update:
    """A value that a group gets."""

    group: dict[str, Any]
    key: str
    value: Any
    is_apart: bool = False
    """Whether a tensor that it has now is shared with a group that keeps another."""

    def apply(self) -> None:
        """Set the value; a tensor stays the tensor that it is.

        Unless another group has it too, and that one got another value.
        """
        current = self.group.get(self.key)
        if self.is_apart and isinstance(current, Tensor):
            is_learnt = current.requires_grad
            current = current.detach().clone().requires_grad_(is_learnt)
            self.group[self.key] = current
        if isinstance(current, Tensor):
            is_tensor = isinstance(self.value, Tensor)
            dtype = None if is_tensor else current.dtype
            current.copy_(torch.as_tensor(self.value, dtype=dtype))
        else:
            self.group[self.key] = copy.deepcopy(self.value)


def plan_values(
    slots: Iterable[Slot], saved: SavedState, problems: list[str]
) -> tuple[list[Update], list[Difference]]:
    """Plan what the groups get from a checkpoint, and list what differs.

    Counters and estimates that a class keeps in its groups are restored; settings stay
    this run's, unless the policy of their optimizer is `checkpoint`.
    """
    by_group: dict[int, list[Slot]] = {}
    holders: dict[int, Optimizer] = {}
    for slot in slots:
        holders[id(slot.optimizer)] = slot.optimizer
        if slot.name in saved.values:
            by_group.setdefault(id(slot.group), []).append(slot)
    updates: list[Update] = []
    differences: dict[tuple[str, str, str], Difference] = {}
    for members in by_group.values():
        _plan_group(members, saved, updates, differences, problems)
    return _parted(updates, holders.values()), list(differences.values())


def _plan_group(
    members: list[Slot],
    saved: SavedState,
    updates: list[Update],
    differences: dict[tuple[str, str, str], Difference],
    problems: list[str],
) -> None:
    group, first = members[0].group, members[0]
    settings = arguments_of(first.optimizer) | {"lr", "initial_lr"}
    takes_saved = first.on_resume == "checkpoint"
    rows = [(slot, saved.values[slot.name]) for slot in members]
    added = set[str]().union(*(values for _, values in rows))
    skipped = {*_NOT_VALUES, *RUNTIME}
    if _DECOUPLED in group and _DECOUPLED not in settings:
        # It is what AdamW is, in a group that Adam has too.
        skipped.add(_DECOUPLED)
        compare(_DECOUPLED, rows, differences, is_taken=False)
    keys = [*group, *sorted(added - group.keys() - settings)]
    for key in (key for key in keys if key not in skipped):
        is_setting = key in settings
        if is_setting and key != "initial_lr" and key in group:
            compare(key, rows, differences, is_taken=takes_saved)
        if key == "lr" and not takes_saved:
            updates += _live_rate(rows, problems)
        if takes_saved or not is_setting:
            updates += _taken(key, rows, problems, is_setting=is_setting)


def _taken(
    key: str, rows: Rows, problems: list[str], *, is_setting: bool
) -> list[Update]:
    """Take a saved value over, or note why it can't be."""
    group, first = rows[0][0].group, rows[0][0]
    found = {slot.name: values[key] for slot, values in rows if key in values}
    values = list(found.values())
    if any(not equal(value, values[0]) for value in values):
        listed = ", ".join(list(found)[:SHOWN])
        instead = ", or use on_resume: config" if is_setting else ""
        problems.append(
            f"{key} was saved with several values for the parameters of one group"
            f" ({listed}, ...): group them as they were{instead}"
        )
        return []
    if not values:
        return []
    value = plain(values[0])
    if key == "lr" and "initial_lr" not in group:
        # No schedule is at work here yet, and the one to come starts from lr.
        value = plain(rows[0][1].get("initial_lr", value))
    name = next(iter(found))
    if key in group and not _is_like(value, group[key]):
        what = f"the saved {key} of {name} is {shown(value)}, unlike"
        problems.append(f"{what} {shown(plain(group[key]))}")
        return []
    if is_setting:
        try:
            value = _checked(key, value, first)
        except Refused as refused:
            at = f"{key}{refused.index}"
            problems.append(f"the saved {at} of {name} can't be taken: {refused}")
            return []
    return [Update(group, key, value)]


def _checked(key: str, value: Any, slot: Slot) -> Any:
    """Check a saved setting as that of a node is checked.

    Raises:
        Refused: The class does not take it.

    """
    field = "lr" if key == "initial_lr" else key
    is_tensor = isinstance(value, Tensor)
    number = value.item() if is_tensor and value.numel() == 1 else value
    if isinstance(number, Tensor):
        return value
    if field in CHECKS and (field == "betas" or not isinstance(number, (list, tuple))):
        number = CHECKS[field](number)
    argument = signature_of(type(slot.optimizer)).arguments.get(field)
    if argument is not None:
        number = fit_value(number, argument)
    return value if is_tensor else number


def _parted(updates: list[Update], holders: Iterable[Optimizer]) -> list[Update]:
    """Part tensors that several groups have now, and that not all get one value."""
    groups = [group for holder in holders for group in holder.param_groups]
    held = Counter(id(value) for group in groups for value in group.values())
    due = Counter(id(update.group.get(update.key)) for update in updates)
    first: dict[int, Any] = {}
    parted = []
    for update in updates:
        current = update.group.get(update.key)
        is_apart = isinstance(current, Tensor) and (
            due[id(current)] < held[id(current)]
            or not equal(first.setdefault(id(current), update.value), update.value)
        )
        parted.append(replace(update, is_apart=is_apart))
    return parted


def _live_rate(rows: Rows, problems: list[str]) -> list[Update]:
    """Let a rate that a schedule had changed go on from there, in proportion.

    Some schedules (torch's ExponentialLR) make each rate from the one before.
    """
    group = rows[0][0].group
    for slot, values in rows:
        start, now = (_rate(values.get(key)) for key in ("initial_lr", "lr"))
        if "initial_lr" in group and start and now is not None:
            if not math.isfinite(start) or not math.isfinite(now):
                what = f"the saved lr of {slot.name} is {now}, and began with {start}"
                problems.append(what)
                return []
            base = group["initial_lr"]
            base = base.detach() if isinstance(base, Tensor) else base
            return [Update(group, "lr", plain(base) * (now / start))]
    return []


def _rate(value: Any) -> float | None:
    is_number = isinstance(value, Tensor) and value.numel() == 1
    return to_float(value.item() if is_number else value)


def _is_like(value: Any, current: Any) -> bool:
    """Whether a saved setting is of the kind of this run's."""
    if isinstance(current, Tensor) and current.ndim:
        return isinstance(value, Tensor) and value.shape == current.shape
    if isinstance(current, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(current):
            return False
        return all(map(_is_like, value, current))
    if isinstance(current, (bool, str)):
        return isinstance(value, type(current))
    if isinstance(current, (int, float, Tensor)):
        return to_float(value) is not None and not isinstance(value, str)
    return True
