"""Compare saved group values with this run's, and plan which of them change."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from optim_hydra.saved_state import SavedState
from optim_hydra.state_slots import Slot, arguments_of
from optim_hydra.value_checks import shown, to_float

__all__ = ["Difference", "Update", "plan_values"]

# They say how the step is computed here, not what it is.
RUNTIME = ("fused", "foreach", "capturable", "differentiable")
_NOT_VALUES = ("params", "param_names", "name")
_DECOUPLED = "decoupled_weight_decay"
_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """A setting that was saved with another value than this run has."""

    key: str
    saved: Any
    current: Any
    names: list[str]
    """Parameters that it holds for."""
    is_taken: bool = False
    """Whether the saved value is used."""

    def __str__(self) -> str:
        """Show key, saved and current value, and the first few names."""
        more = len(self.names) - _SHOWN
        names = ", ".join(self.names[:_SHOWN]) + (f" and {more} more" * (more > 0))
        if self.is_taken:
            return f"{self.key}: {self.saved} as saved, not {self.current} ({names})"
        return f"{self.key}: saved {self.saved}, now {self.current} ({names})"


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
            current.copy_(torch.as_tensor(self.value))
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
    for slot in slots:
        if slot.name in saved.values:
            by_group.setdefault(id(slot.group), []).append(slot)
    updates: list[Update] = []
    differences: dict[tuple[str, str, str], Difference] = {}
    for members in by_group.values():
        _plan_group(members, saved, updates, differences, problems)
    return _parted(updates), list(differences.values())


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
    if _DECOUPLED not in settings:
        skipped.add(_DECOUPLED)  # part of AdamW, in a group that Adam has too
    keys = [*group, *sorted(added - group.keys() - settings)]
    for key in (key for key in keys if key not in skipped):
        if key in settings and key != "initial_lr" and key in group:
            _compare(key, rows, differences)
        if key == "lr" and not takes_saved:
            updates += _live_rate(rows)
        if key in settings and not takes_saved:
            continue
        found = {slot.name: values[key] for slot, values in rows if key in values}
        if not found:
            continue
        values = list(found.values())
        if any(not _equal(value, values[0]) for value in values):
            listed = ", ".join(list(found)[:_SHOWN])
            problems.append(
                f"{key} was saved with several values for the parameters of one group"
                f" ({listed}, ...): group them as they were, or use on_resume: config"
            )
            continue
        value = _plain(values[0])
        if key == "lr" and "initial_lr" not in group:
            # No schedule is at work here yet, and the one to come starts from lr.
            value = _plain(saved.values[first.name].get("initial_lr", value))
        if key in group and not _is_like(value, group[key]):
            what = f"the saved {key} of {first.name} is {shown(value)}, unlike"
            problems.append(f"{what} {shown(_plain(group.get(key)))}")
            continue
        updates.append(Update(group, key, value))


def _parted(updates: list[Update]) -> list[Update]:
    """Part tensors that several groups have now and that get different values."""
    first: dict[int, Any] = {}
    parted = []
    for update in updates:
        held = update.group.get(update.key)
        shared = first.setdefault(id(held), update.value)
        is_apart = isinstance(held, Tensor) and not _equal(shared, update.value)
        parted.append(replace(update, is_apart=is_apart))
    return parted


def _live_rate(rows: list[tuple[Slot, dict[str, Any]]]) -> list[Update]:
    """Let a rate that a schedule had changed go on from there, in proportion.

    Some schedules (torch's ExponentialLR) make each rate from the one before.
    """
    group = rows[0][0].group
    for _, values in rows:
        start, now = _plain(values.get("initial_lr")), _plain(values.get("lr"))
        if "initial_lr" in group and to_float(start) and to_float(now) is not None:
            share = float(now) / float(start)
            return [Update(group, "lr", _plain(group["initial_lr"]) * share)]
    return []


def _compare(
    key: str,
    rows: list[tuple[Slot, dict[str, Any]]],
    differences: dict[tuple[str, str, str], Difference],
) -> None:
    group = rows[0][0].group
    current = group.get("initial_lr", group["lr"]) if key == "lr" else group[key]
    unchanged: list[Any] = []  # the last value that is equal; most rows have the same
    for slot, values in rows:
        if key not in values:
            continue
        old = values.get("initial_lr", values["lr"]) if key == "lr" else values[key]
        if unchanged and old is unchanged[0]:
            continue
        if _equal(old, current):
            unchanged = [old]
            continue
        mark = (key, repr(old), repr(current))
        if mark not in differences:
            taken = slot.on_resume == "checkpoint"
            differences[mark] = Difference(key, _plain(old), _plain(current), [], taken)
        differences[mark].names.append(slot.name)


def _is_like(value: Any, current: Any) -> bool:
    """Whether a saved setting is of the kind of this run's."""
    if isinstance(current, Tensor) and current.ndim:
        return isinstance(value, Tensor) and value.shape == current.shape
    if isinstance(current, (list, tuple)):
        if not isinstance(value, (list, tuple)) or len(value) != len(current):
            return False
        return all(map(_is_like, value, current))
    if isinstance(current, (int, float, Tensor)) and not isinstance(current, bool):
        return to_float(value) is not None and not isinstance(value, str)
    return True


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return bool(first == second)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_equal(a, b) for a, b in pairs)
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        try:
            one, other = (torch.as_tensor(value) for value in (first, second))
            return one.shape == other.shape and one.tolist() == other.tolist()
        except (TypeError, ValueError, RuntimeError):
            return False
    both_nan = first != first and second != second  # noqa: PLR0124 - NaN alone
    return bool(first == second or both_nan)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value
