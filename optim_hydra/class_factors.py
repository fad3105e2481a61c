"""Read the factors of a schedule off a torch scheduler class."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optim_hydra.errors import OptimHydraError, Problems
from optim_hydra.scheduler_classes import (
    ARGUMENTS,
    arguments_of,
    check_arguments,
    lengths_due,
    load_scheduler_class,
    loaded_class,
)

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler

__all__ = ["ClassFactors", "ScheduleError", "factors_of"]

# No default of any class, so that a scheduler that sets it is seen.
_MOMENTUM = 0.123


class ScheduleError(OptimHydraError, ValueError):
    """The function of a schedule gives no factor."""


class ClassFactors:
    """The rates that a torch scheduler gives one parameter, over the lr it starts from.

    The scheduler drives an optimizer of its own, step by step from the end of the
    warmup, and what it gave is kept (8 bytes a step). Rates that it takes as numbers,
    such as `eta_min`, are so those of groups with the node's lr; others keep their
    ratio.
    """

    def __init__(
        self, cls: type[LRScheduler], arguments: Mapping[str, Any], lr: float
    ) -> None:
        """Build the scheduler.

        Args:
            cls: The scheduler class.
            arguments: Of its constructor, all but the optimizer.
            lr: That the scheduler starts from.

        Raises:
            ScheduleError: The class fails, or sets more than the rate.

        """
        from torch import zeros  # noqa: PLC0415 - torch only once a class is due
        from torch.optim import SGD  # noqa: PLC0415

        self.cls, self.arguments, self.lr = cls, dict(arguments), lr
        base = lr or 1.0
        self._optimizer = SGD([zeros(1)], lr=base, momentum=_MOMENTUM)
        (self._group,) = self._optimizer.param_groups
        self._kept = {k: v for k, v in self._group.items() if k not in ("params", "lr")}
        self._base = base
        self._factors = array("d")
        try:
            self._scheduler = cls(self._optimizer, **self.arguments)
        except Exception as error:
            msg = f"{cls.__name__} fails: {type(error).__name__}: {error}"
            raise ScheduleError(msg) from error
        self._optimizer.step()  # torch warns of a scheduler that goes first
        self._read()

    def __call__(self, step: int, *, warmup: int = 0) -> float:
        """Return the factor of a step, from `warmup` on.

        Past the steps that the class was told of (`total_steps`) the last one stays.
        """
        position, last = step - warmup, getattr(self._scheduler, "total_steps", None)
        if isinstance(last, int):
            position = min(position, last - 1)
        while len(self._factors) <= position:
            self._scheduler.step()
            self._read()
        return self._factors[position]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of; the rates are worked out anew."""
        return type(self), (self.cls, self.arguments, self.lr)

    def described(self) -> dict[str, Any]:
        """Return what it is made of, as numbers and text."""
        return {ARGUMENTS: json.dumps(self.arguments), "lr": self.lr}

    @classmethod
    def of(cls, name: str, described: Mapping[str, Any]) -> ClassFactors:
        """Make it from what `described` returned.

        Raises:
            ScheduleError: No module that is imported here has the class.

        """
        found = loaded_class(name)
        if found is None:
            msg = f"the saved schedule {name!r} is no scheduler of a module in use here"
            raise ScheduleError(msg)
        return cls(found, json.loads(described[ARGUMENTS]), described["lr"])

    def _read(self) -> None:
        changed = [k for k, v in self._kept.items() if self._group[k] != v]
        if changed:
            name = self.cls.__name__
            msg = f"{name} sets {', '.join(changed)} too, and a schedule sets the rate"
            cycles = "cycle_momentum"
            hint = f": set {ARGUMENTS}.{cycles}=false" if "momentum" in changed else ""
            raise ScheduleError(msg + hint)
        self._factors.append(float(self._group["lr"]) / self._base)


def factors_of(
    name: str, given: Mapping[str, Any], lr: float, steps: int, problems: Problems
) -> ClassFactors:
    """Make the factors of a class, named by its dotted path.

    Args:
        name: The path.
        given: Arguments of its constructor.
        lr: What the factors are relative to.
        steps: After the warmup, for the arguments that are this number.
        problems: Where to note why it can't be had.

    Raises:
        ConfigError: With all problems, also those noted before.

    """
    cls = load_scheduler_class(name, problems)
    if cls is not None:
        arguments = check_arguments(cls, given, problems)
        lengths = dict.fromkeys(lengths_due(arguments_of(cls), given), steps)
        try:
            if not problems.found:
                return ClassFactors(cls, {**lengths, **arguments}, lr)
        except ScheduleError as error:
            problems.add(str(error), ARGUMENTS, cause=error)
    raise problems.error()
