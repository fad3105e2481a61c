"""Tell which fields of a node its schedule reads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Mapping

from optim_hydra.errors import Problems, nearest
from optim_hydra.schedule import OPTIONAL_FIELDS, SCHEDULES, ScheduleFunction
from optim_hydra.scheduler_classes import (
    ARGUMENTS,
    arguments_of,
    is_class_path,
    lengths_due,
    load_scheduler_class,
)
from optim_hydra.schema import OptimConfig

__all__ = ["instead_of_unread", "is_schedule", "keywords", "read_by", "unread_fields"]


def is_schedule(name: str) -> bool:
    """Whether a `lr_scheduler_type` is registered, or may be a class."""
    return name in SCHEDULES or is_class_path(name)


def keywords(optim: OptimConfig) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a registered schedule; a class has no function."""
    function = SCHEDULES.get(optim.lr_scheduler_type)
    return {} if function is None else _parameters_of(function)


@functools.lru_cache(maxsize=256)
def _parameters_of(function: ScheduleFunction) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def read_by(optim: OptimConfig) -> Collection[str]:
    """Name what a schedule reads: fields, and `total` where it needs that."""
    if optim.lr_scheduler_type in SCHEDULES:
        return keywords(optim)
    given = optim.override_lr_scheduler_config or {}
    return ["total"] if lengths_due(_arguments_read(optim), given) else []


def unread_fields(optim: OptimConfig) -> list[str]:
    """Return the fields that were changed and that the chosen schedule ignores."""
    read = read_by(optim)
    fields = [
        key
        for key, unset in OPTIONAL_FIELDS.items()
        if key not in read and getattr(optim, key) not in (None, unset)
    ]
    given = optim.override_lr_scheduler_config or {}
    if given:
        taken = _arguments_read(optim)
        fields += [f"{ARGUMENTS}.{name}" for name in given if name not in taken]
    return fields


def instead_of_unread(optim: OptimConfig, key: str) -> str:
    """Say what to do about a field that the schedule does not read."""
    if key in OPTIONAL_FIELDS:
        unset = OPTIONAL_FIELDS[key] or "null"
        return f": set {key}={unset}, or strict=false"
    near = nearest(key.removeprefix(f"{ARGUMENTS}."), _arguments_read(optim))
    return near or ": leave it out, or strict=false"


def _arguments_read(optim: OptimConfig) -> Collection[str]:
    """Name the arguments of the constructor where the schedule is a class."""
    if optim.lr_scheduler_type in SCHEDULES:
        return ()
    cls = load_scheduler_class(optim.lr_scheduler_type, Problems(""))
    return () if cls is None else arguments_of(cls)
