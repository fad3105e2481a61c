"""Own `Schedule`: a schedule with its numbers, which gives the factor of each step."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.class_factors import ClassFactors, ScheduleError
from optim_hydra.schedule import OPTIONAL_FIELDS, SCHEDULES, ScheduleFunction
from optim_hydra.scheduler_classes import is_class_path

__all__ = ["Schedule", "ScheduleError"]


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
            **self._of_class(),
        }

    def _of_class(self) -> dict[str, Any]:
        function = self.function
        return function.described() if isinstance(function, ClassFactors) else {}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Schedule:
        """Make a schedule from what `described` returned.

        Raises:
            ScheduleError: Its function is not registered here.

        """
        name = described["lr_scheduler_type"]
        function: ScheduleFunction
        if name in SCHEDULES:
            function = SCHEDULES[name]
        elif is_class_path(name):
            function = ClassFactors.of(name, described)
        else:
            msg = f"the saved schedule {name!r} is not registered in this program"
            raise ScheduleError(msg)
        warmup, total = described["lr_warmup_steps"], described["total_training_steps"]
        read = inspect.signature(function).parameters
        given = {**described, "warmup": warmup, "total": total}
        return cls(
            name=name,
            warmup=warmup,
            total=total,
            init_ratio=described["lr_warmup_init_ratio"],
            zero_indexed=described["zero_indexed_step"],
            numbers={key: given[key] for key in read if key in given},
            function=function,
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
