"""Turn the schedule fields of a checked config into one schedule with its numbers."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from optim_hydra.bound_schedule import Schedule
from optim_hydra.class_factors import factors_of
from optim_hydra.errors import ConfigError, Problems, join_key, nearest
from optim_hydra.schedule import OPTIONAL_FIELDS, SCHEDULES, steps_of
from optim_hydra.schedule_reads import (
    instead_of_unread,
    is_schedule,
    keywords,
    read_by,
    unread_fields,
)
from optim_hydra.scheduler_classes import (
    ARGUMENTS,
    check_arguments,
    is_class_path,
    load_scheduler_class,
)
from optim_hydra.schema import OptimConfig
from optim_hydra.schema_groups import SCHEDULE_KEYS

__all__ = [
    "check_rule_schedule",
    "check_schedule",
    "plan_schedule",
    "plan_schedules",
    "rule_schedule",
]


def check_schedule(optim: OptimConfig, problems: Problems) -> None:
    """Note what is known to be wrong before the number of steps is known."""
    name = optim.lr_scheduler_type
    if not is_schedule(name):
        accepted = ", ".join(sorted(SCHEDULES))
        what = f"no schedule {name!r}{nearest(name, SCHEDULES)} (there are {accepted},"
        what += " and torch's classes by dotted path)"
        problems.add(what, "lr_scheduler_type")
        return
    if name not in SCHEDULES:
        cls = load_scheduler_class(name, problems)
        if cls is None:
            return
        check_arguments(cls, optim.override_lr_scheduler_config or {}, problems)
    if optim.strict:
        for key in unread_fields(optim):
            instead = instead_of_unread(optim, key)
            problems.add(f"the schedule {name} does not read {key}{instead}", key)


def rule_schedule(optim: OptimConfig, rule: Mapping[str, Any]) -> OptimConfig | None:
    """Return the node with a rule's own schedule; None where the rule has none.

    What the rule leaves open comes from the node, as far as its schedule reads it; a
    warmup of its own takes the place of the node's, in steps or as a ratio.
    """
    own = {key: rule[key] for key in SCHEDULE_KEYS if key in rule}
    name = own.get("lr_scheduler_type", optim.lr_scheduler_type)
    if not own or not is_schedule(name):
        return None
    if name != optim.lr_scheduler_type:
        own.setdefault(ARGUMENTS, {})
    if is_class_path(name):
        own["lr"] = rule.get("lr", optim.lr * rule.get("lr_mult", 1.0))
    if "lr_warmup_steps" in own:
        own.setdefault("lr_warmup_steps_ratio", 0.0)
    elif "lr_warmup_steps_ratio" in own:
        own["lr_warmup_steps"] = -1
    merged = replace(optim, param_groups=[], **own)
    unread = OPTIONAL_FIELDS.keys() & unread_fields(merged) - own.keys()
    return replace(merged, **{key: OPTIONAL_FIELDS[key] for key in unread})


def check_rule_schedule(
    optim: OptimConfig, rule: Mapping[str, Any], number: int, problems: Problems
) -> None:
    """Note what is wrong with a rule's own schedule."""
    own = Problems(join_key(problems.at, f"param_groups[{number}]"))
    name = rule.get("lr_scheduler_type", optim.lr_scheduler_type)
    if is_schedule(name):
        merged = rule_schedule(optim, rule)
    else:
        merged = replace(optim, param_groups=[], lr_scheduler_type=name)
    is_said = name == optim.lr_scheduler_type and not is_schedule(name)
    if merged is not None and not is_said:
        check_schedule(merged, own)
    problems.found += own.found


def plan_schedules(
    optim: OptimConfig, total: int, problems: Problems
) -> tuple[Schedule, dict[str, Schedule]]:
    """Work out the schedule of a config, and those of its rules by their place.

    Raises:
        ConfigError: With all problems, also those noted before.

    """
    by_rule: dict[str, Schedule] = {}
    planned = [("", optim)]
    for number, rule in enumerate(optim.param_groups):
        merged = rule_schedule(optim, rule)
        if merged is not None:
            planned.append((f"param_groups[{number}]", merged))
    for at, each in planned:
        try:
            by_rule[at] = plan_schedule(
                each, total, Problems(join_key(problems.at, at))
            )
        except ConfigError as error:
            problems.found += error.problems
    problems.raise_if_any()
    return by_rule.pop(""), by_rule


def plan_schedule(optim: OptimConfig, total: int, problems: Problems) -> Schedule:
    """Work out the schedule of a checked config.

    Args:
        optim: The config; its `lr_scheduler_type` is registered, or a class.
        total: Optimizer steps in all, -1 where nobody knows.
        problems: Where to note what does not fit together.

    Raises:
        ConfigError: With all problems, also those noted before.

    """
    read = read_by(optim)
    _check_total(optim, total, read, problems)
    problems.raise_if_any()
    warmup = _warmup_steps(optim, total, problems)
    numbers: dict[str, Any] = {
        key: getattr(optim, key) for key in OPTIONAL_FIELDS if key in read
    }
    if "min_lr_ratio" in numbers:
        numbers["min_lr_ratio"] = numbers["min_lr_ratio"] or 0.0
    _check_whole(optim, numbers, problems)
    if "lr_decay_steps_ratio" in numbers:
        _check_decay(optim, warmup, total, problems)
    problems.raise_if_any()
    function = SCHEDULES.get(optim.lr_scheduler_type) or factors_of(
        optim.lr_scheduler_type,
        optim.override_lr_scheduler_config or {},
        optim.lr,
        total - warmup,
        problems,
    )
    spans = {"warmup": warmup, "total": total}
    taken = inspect.signature(function).parameters
    numbers.update({key: value for key, value in spans.items() if key in taken})
    return Schedule(
        name=optim.lr_scheduler_type,
        warmup=warmup,
        total=total,
        init_ratio=optim.lr_warmup_init_ratio,
        zero_indexed=optim.zero_indexed_step,
        numbers=numbers,
        function=function,
    )


def _check_total(
    optim: OptimConfig, total: int, read: Collection[str], problems: Problems
) -> None:
    by_ratio = optim.lr_warmup_steps_ratio > 0 and optim.lr_warmup_steps != 0
    if total != -1 or not ("total" in read or by_ratio):
        return
    who = f"the schedule {optim.lr_scheduler_type}"
    if "total" not in read:
        who = f"lr_warmup_steps_ratio={optim.lr_warmup_steps_ratio}"
    what = (
        f"{who} needs the number of steps in all: set it, or pass it from the trainer"
    )
    problems.add(what, "total_training_steps")


def _warmup_steps(optim: OptimConfig, total: int, problems: Problems) -> int:
    ratio, steps = optim.lr_warmup_steps_ratio, optim.lr_warmup_steps
    from_ratio = steps_of(ratio, total) if total > 0 else 0
    if steps is None or steps == -1:
        return from_ratio
    if steps > 0 and ratio > 0 and steps != from_ratio:
        what = (
            f"lr_warmup_steps={steps} and lr_warmup_steps_ratio={ratio}"
            f" ({from_ratio} of {total} steps) disagree: set lr_warmup_steps_ratio=0 or"
            " lr_warmup_steps=-1"
        )
        problems.add(what, "lr_warmup_steps")
    if steps > total > 0:
        what = f"lr_warmup_steps={steps} is more than total_training_steps={total}:"
        what += " lower it, or set lr_warmup_steps_ratio instead"
        problems.add(what, "lr_warmup_steps")
    return steps


def _check_whole(
    optim: OptimConfig, numbers: dict[str, Any], problems: Problems
) -> None:
    """Make whole numbers of those that the schedule annotates as such."""
    parameters = keywords(optim)
    for key, value in numbers.items():
        if parameters[key].annotation not in (int, "int"):
            continue
        if value < 1 or value % 1:
            what = f"{optim.lr_scheduler_type} takes a whole number >= 1, not {value}"
            problems.add(what, key)
        numbers[key] = int(value)


def _check_decay(
    optim: OptimConfig, warmup: int, total: int, problems: Problems
) -> None:
    ratio = optim.lr_decay_steps_ratio
    decay = steps_of(ratio, total)
    by_ratio = optim.lr_warmup_steps in (None, -1)
    if by_ratio and ratio + optim.lr_warmup_steps_ratio <= 1.0 + 1e-9:
        return  # both may be rounded up; the decay then starts where the warmup ends
    if warmup + decay > total:
        what = (
            f"{warmup} warmup steps and {decay} decay steps"
            f" (lr_decay_steps_ratio={ratio}) are more than the {total} steps in"
            " all: lower lr_warmup_steps or lr_decay_steps_ratio"
        )
        problems.add(what, "total_training_steps")
