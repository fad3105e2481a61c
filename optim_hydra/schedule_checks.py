"""Check the saved state of a schedule before anything of it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optim_hydra.bound_schedule import Schedule
from optim_hydra.errors import ConfigError, Problem
from optim_hydra.value_checks import Count, Refused, shown, to_float

__all__ = ["GROUP", "check_kinds", "check_usable", "saved_step", "schedules_of"]

# Stands before the number of a group in saved state.
GROUP = "group "
_PLAIN = (bool, int, float, str, type(None))


def saved_step(state_dict: Any) -> int:
    """Return the step that a schedule was saved at.

    Raises:
        ConfigError: There is none.

    """
    found = state_dict.get("last_epoch") if isinstance(state_dict, Mapping) else None
    try:
        step = Count(low=0, also=(-1,))(found)
    except Refused as refused:
        what = f"the saved state of a schedule holds no step, last_epoch: {refused}"
        raise ConfigError([Problem(what, "", ConfigError)]) from refused
    return -1 if step is None else step


def check_kinds(state_dict: Mapping[str, Any]) -> None:
    """Check that saved values are of the kinds that `ScheduledLR` saves.

    Raises:
        ConfigError: One is not.

    """
    for key, value in state_dict.items():
        due = ""
        if key == "in_charge":
            due = "" if isinstance(value, bool) else "true or false"
        elif key == "base_lrs":
            due = "" if _are_rates(value) else "a list of rates"
        elif str(key).startswith(GROUP):
            is_right = isinstance(value, Mapping) and all(
                map(_is_plain, value.values())
            )
            due = "" if is_right else "a mapping of fields"
        elif not _is_plain(value):
            due = "a number or text"
        if due:
            what = f"{key} of the saved schedule is {shown(value)}, where {due} is due"
            raise ConfigError([Problem(what, "", ConfigError)])


def check_usable(state_dict: Mapping[str, Any], num_groups: int, step: int) -> None:
    """Check that a saved schedule can take the place of this run's.

    Raises:
        ConfigError: It can't.

    """
    known = {f"{GROUP}{index}" for index in range(num_groups)}
    strange = [key for key in state_dict if key.startswith(GROUP) and key not in known]
    try:
        if strange:
            msg = f"it has {strange[0]!r}, and the groups count from 0"
            msg += f" to {num_groups - 1}"
            raise ValueError(msg)  # noqa: TRY301 - told as the others are
        for schedule in schedules_of(state_dict):
            schedule.factor(max(step, 0))
            schedule.described()
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        what = f"the saved schedule can't be used: {error}"
        raise ConfigError([Problem(what, "", ConfigError)]) from error


def schedules_of(state_dict: Mapping[str, Any]) -> list[Schedule]:
    """Return the saved schedule, and those of the groups that have their own."""
    own = [value for key, value in state_dict.items() if key.startswith(GROUP)]
    return [Schedule.of(described) for described in (state_dict, *own)]


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN)


def _are_rates(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    rates = [to_float(rate) for rate in value if not isinstance(rate, str)]
    finite = [rate for rate in rates if rate is not None and math.isfinite(rate)]
    return len(finite) == len(value)
