"""Own the schedules: pure step -> factor functions and their registry.

A schedule is the part after the warmup; the ramp before it is the same for all.
Its keyword parameters say which config fields it reads.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeVar

from optim_hydra.declared import (
    DECLARED,
    NameTakenError,
    path_of,
    same_definition,
)
from optim_hydra.errors import OptimHydraError, WrongObjectError

__all__ = ["SCHEDULES", "Schedule", "register_schedule", "steps_of"]

ScheduleFunction = Callable[..., float]
F = TypeVar("F", bound=ScheduleFunction)

# Fields that only some schedules read, each with the value that counts as unset.
OPTIONAL_FIELDS: dict[str, Any] = {
    "min_lr_ratio": 0.0,
    "num_cycles": 0.5,
    "lr_decay_steps_ratio": 0.1,
    "lr_decay_style": "linear",
}
_GIVEN = ("step", "warmup", "total")
SCHEDULES = DECLARED.schedules


def register_schedule(name: str) -> Callable[[F], F]:
    """Register a function as `lr_scheduler_type: <name>`.

    The function is called as `factor(step, *, warmup, total, ...)` for steps from
    `warmup` on and returns what each group's own lr is multiplied by. It names the
    keywords that it reads, of `warmup`, `total` (the steps in all), `min_lr_ratio`,
    `num_cycles`, `lr_decay_steps_ratio` and `lr_decay_style`; one that names `total`
    is refused while no total is known; where it is known, the value at `total` stays.
    The function must be importable to be pickled.

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


class ScheduleError(OptimHydraError, ValueError):
    """The function of a schedule gives no factor."""


@dataclass(frozen=True)
class Schedule:
    """A schedule with its numbers: everything that a factor depends on."""

    name: str
    warmup: int
    total: int
    init_ratio: float
    zero_indexed: bool
    numbers: dict[str, Any]
    function: ScheduleFunction = field(compare=False)

    def described(self) -> dict[str, Any]:
        """Return what it is made of, as the fields of a node."""
        return {
            "lr_scheduler_type": self.name,
            "lr_warmup_steps": self.warmup,
            "total_training_steps": self.total,
            "lr_warmup_init_ratio": self.init_ratio,
            "zero_indexed_step": self.zero_indexed,
            **{k: v for k, v in self.numbers.items() if k in OPTIONAL_FIELDS},
        }

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Schedule:
        """Make a schedule from what `described` returned.

        Raises:
            ScheduleError: Its function is not registered here.

        """
        name = described["lr_scheduler_type"]
        if name not in SCHEDULES:
            msg = f"the saved schedule {name!r} is not registered in this program"
            raise ScheduleError(msg)
        warmup, total = described["lr_warmup_steps"], described["total_training_steps"]
        read = inspect.signature(SCHEDULES[name]).parameters
        given = {**described, "warmup": warmup, "total": total}
        return cls(
            name=name,
            warmup=warmup,
            total=total,
            init_ratio=described["lr_warmup_init_ratio"],
            zero_indexed=described["zero_indexed_step"],
            numbers={key: given[key] for key in read if key in given},
            function=SCHEDULES[name],
        )

    def factor(self, step: int) -> float:
        """Return what each lr is multiplied by after `step` schedule steps.

        Raises:
            ScheduleError: The schedule's function fails or returns no finite number.

        """
        step = max(step, 0)
        if self.total > 0:
            step = min(step, self.total)
        if step < self.warmup:
            done = step if self.zero_indexed else step + 1
            return self.init_ratio + (1.0 - self.init_ratio) * done / self.warmup
        try:
            factor = float(self.function(step, **self.numbers))
        except Exception as error:
            msg = f"the schedule {self.name!r} fails at step {step}: {error!r}"
            raise ScheduleError(msg) from error
        if not math.isfinite(factor):
            msg = f"the schedule {self.name!r} gives {factor} at step {step}"
            raise ScheduleError(msg)
        return factor
