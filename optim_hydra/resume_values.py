"""Compare saved group values with this run's, and plan which of them change."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from optim_hydra.saved_state import SavedState
from optim_hydra.state_slots import Slot, arguments_of
from optim_hydra.value_checks import shown, to_float

__all__ = ["Difference", "Update", "plan_values"]

# They say how the step is computed here, not what it is.
RUNTIME = ("fused", "foreach", "capturable", "differentiable")
_NOT_VALUES = ("params", "param_names", "name")
# Options for which a class keeps more state.
_NEED_STATE = ("amsgrad", "centered")
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

    def apply(self) -> None:
        """Set the value; a tensor stays the tensor that it is."""
        current = self.group.get(self.key)
        if isinstance(current, Tensor):
            current.fill_(float(self.value))
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
    return updates, list(differences.values())


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
    for key in [*group, *sorted(added - group.keys() - settings)]:
        if key in _NOT_VALUES or key in RUNTIME:
            continue
        if key == _DECOUPLED and key not in settings:
            continue  # AdamW's is part of the class, in a group that Adam has too
        if key in settings and key != "initial_lr" and key in group:
            _compare(key, rows, differences, problems)
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


def _compare(
    key: str,
    rows: list[tuple[Slot, dict[str, Any]]],
    differences: dict[tuple[str, str, str], Difference],
    problems: list[str],
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
        if key in _NEED_STATE and current and not old and slot.on_resume == "config":
            what = f"{key} is on and was off when the state of {slot.name} was saved"
            problems.append(f"{what}: what it needs is missing")
        if mark not in differences:
            taken = slot.on_resume == "checkpoint"
            differences[mark] = Difference(key, _plain(old), _plain(current), [], taken)
        differences[mark].names.append(slot.name)


def _is_like(value: Any, current: Any) -> bool:
    """Whether a saved setting is of the kind of this run's."""
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
            return float(first) == float(second)
        except (TypeError, ValueError):
            return False
    both_nan = first != first and second != second  # noqa: PLR0124 - NaN alone
    return bool(first == second or both_nan)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value
