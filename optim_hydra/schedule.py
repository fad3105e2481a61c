"""Own the schedules: pure step -> factor functions and their registry.

A schedule is the part after the warmup; the ramp before it is the same for all.
Its keyword parameters say which config fields it reads.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeVar

from optim_hydra.declared import (
    DECLARED,
    NameTakenError,
    path_of,
    same_definition,
)
from optim_hydra.errors import WrongObjectError

__all__ = ["SCHEDULES", "ScheduleFunction", "register_schedule", "steps_of"]

ScheduleFunction = Callable[..., float]
F = TypeVar("F", bound=ScheduleFunction)

# Fields that only some schedules read, each with the value that counts as unset.
OPTIONAL_FIELDS: dict[str, Any] = {
    "min_lr_ratio": 0.0,
    "num_cycles": 0.5,
    "lr_decay_steps_ratio": 0.1,
    "lr_decay_style": "linear",
    "lr_decay_power": 1.0,
}
_GIVEN = ("step", "warmup", "total")
SCHEDULES = DECLARED.schedules


def register_schedule(name: str) -> Callable[[F], F]:
    """Register a function as `lr_scheduler_type: <name>`.

    The function is called as `factor(step, *, warmup, total, ...)` for steps from
    `warmup` on and returns what each group's own lr is multiplied by. It names the
    keywords that it reads, of `warmup`, `total` (the steps in all), `min_lr_ratio`,
    `num_cycles`, `lr_decay_steps_ratio`, `lr_decay_style` and `lr_decay_power`; one
    that names `total` is refused while no total is known; where it is known, the value
    at `total` stays. A field that is annotated as `int` has to be a whole number, at
    least 1. The function must be importable to be pickled.

    Raises:
        NameTakenError: Another function has the name.
        WrongObjectError: The function names other keywords.

    Example:
        >>> @register_schedule("halved")
        ... def halved(step: int, *, total: int) -> float:
        ...     return 1.0 if step < total / 2 else 0.5

    """

    def register(function: F) -> F:
        parameters = set(inspect.signature(function).parameters)
        unknown = sorted(parameters - {*_GIVEN, *OPTIONAL_FIELDS})
        if unknown or "step" not in parameters:
            what = f"names {', '.join(unknown)}" if unknown else "does not take step"
            accepted = ", ".join((*_GIVEN, *OPTIONAL_FIELDS))
            msg = f"schedule {name!r} {what}: a schedule reads {accepted}"
            raise WrongObjectError(msg)
        known = SCHEDULES.get(name, function)
        if not same_definition(known, function):
            msg = (
                f"schedule {name!r} is already {path_of(known)};"
                f" {path_of(function)} needs another name"
            )
            raise NameTakenError(msg)
        SCHEDULES[name] = function
        return function

    return register


@register_schedule("constant")
def constant(step: int) -> float:  # noqa: ARG001 - the signature of a schedule
    """Stay at lr."""
    return 1.0


@register_schedule("linear")
def linear(step: int, *, warmup: int, total: int, min_lr_ratio: float) -> float:
    """Go down in a straight line to the floor at step `total`."""
    return _mix(1.0 - _progress(step, warmup, total), min_lr_ratio)


@register_schedule("cosine")
def cosine(
    step: int, *, warmup: int, total: int, min_lr_ratio: float, num_cycles: float
) -> float:
    """Follow `num_cycles` cosine waves (arXiv:1608.03983; 0.5: one way down)."""
    angle = 2.0 * math.pi * num_cycles * _progress(step, warmup, total)
    return _mix((1.0 + math.cos(angle)) / 2.0, min_lr_ratio)


@register_schedule("cosine_with_restarts")
def cosine_with_restarts(
    step: int, *, warmup: int, total: int, min_lr_ratio: float, num_cycles: int
) -> float:
    """Go down like a cosine `num_cycles` times, each time from lr (arXiv:1608.03983).

    As in transformers, where the number is of descents; the last one ends at the floor.
    """
    done = num_cycles * _progress(step, warmup, total)
    part = 1.0 if step >= total else done % 1.0
    return _mix((1.0 + math.cos(math.pi * part)) / 2.0, min_lr_ratio)


@register_schedule("polynomial")
def polynomial(
    step: int, *, warmup: int, total: int, min_lr_ratio: float, lr_decay_power: float
) -> float:
    """Go down as a power of the share that is left; power 1 is `linear`."""
    left = 1.0 - _progress(step, warmup, total)
    return _mix(left**lr_decay_power, min_lr_ratio)


@register_schedule("inverse_sqrt")
def inverse_sqrt(step: int, *, warmup: int, min_lr_ratio: float) -> float:
    """Go down as 1 / sqrt(step), never below the floor (arXiv:1706.03762, 5.3).

    Without warmup the scale is 10,000 steps, as in transformers.
    """
    scale = warmup or 10_000
    return max(math.sqrt(scale / (step - warmup + scale)), min_lr_ratio)


@register_schedule("wsd")
def wsd(  # noqa: PLR0913 - its keywords are the fields that it reads
    step: int,
    *,
    warmup: int,
    total: int,
    min_lr_ratio: float,
    lr_decay_steps_ratio: float,
    lr_decay_style: str,
) -> float:
    """Stay at lr, then decay over the last share of steps (arXiv:2404.06395).

    `sqrt` is 1 - sqrt(u) (arXiv:2405.18392), `exponential` 2 * 0.5**u - 1 (as
    Megatron-LM has it), with u the share of the decay that is done.
    """
    decay = min(steps_of(lr_decay_steps_ratio, total), total - warmup)
    u = _progress(step, total - decay, total)
    left = {
        "linear": 1.0 - u,
        "cosine": (1.0 + math.cos(math.pi * u)) / 2.0,
        "sqrt": 1.0 - math.sqrt(u),
        "exponential": 2.0 * 0.5**u - 1.0,
    }
    return _mix(left[lr_decay_style], min_lr_ratio)


def _progress(step: int, start: int, end: int) -> float:
    """Share of the way from `start` to `end` that is done; 0 before the start."""
    return max(step - start, 0) / (end - start) if end > start else 0.0


def _mix(share: float, floor: float) -> float:
    return floor + (1.0 - floor) * share


def steps_of(ratio: float, total: int) -> int:
    """Return a share of `total` as steps, halves up: 0.29 of 100 is 29."""
    context = Context(prec=40)  # whatever the program has set as its own
    exact = context.multiply(Decimal(repr(ratio)), Decimal(total))
    return int(exact.to_integral_value(rounding=ROUND_HALF_UP, context=context))
