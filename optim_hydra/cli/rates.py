"""Work out the learning rates of a node over a run, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.optim import Optimizer

from optim_hydra.bound_schedule import Schedule
from optim_hydra.errors import ConfigError, Problem, Problems
from optim_hydra.group_records import records_of
from optim_hydra.schedule_plan import plan_schedules
from optim_hydra.schema import OptimConfig

__all__ = ["Curve", "curves_of", "lacks_steps", "merged"]


@dataclass(frozen=True)
class Curve:
    """The rate of one group."""

    label: str
    lr: float
    schedule: Schedule

    def at(self, step: int) -> float:
        """Return the rate of an update; 0 is the first."""
        return self.lr * self.schedule.factor(step)

    def marks(self) -> dict[str, int]:
        """Return the updates worth a look: first, after the warmup, half, end."""
        marks = {"start": 0, "warmup": self.schedule.warmup}
        if self.schedule.total > 0:
            marks |= {
                "half": self.schedule.total // 2,
                "end": self.schedule.total,
            }
        return marks


def curves_of(
    optim: OptimConfig, total: int, at: str, optimizer: Optimizer | None = None
) -> list[Curve]:
    """Return one curve for each group of an optimizer.

    Without an optimizer, nobody knows the groups: then for the node and for each rule
    that sets a rate or a schedule of its own.

    Raises:
        ConfigError: The schedule can't be had, such as one that needs the number of
            steps.

    """
    schedule, by_rule = plan_schedules(optim, total, Problems(at))
    if optimizer is None:
        return _of_node(optim, schedule, by_rule)
    curves = []
    for index, group in enumerate(optimizer.param_groups):
        if "lr" not in group:
            continue
        record = records_of(optimizer)[index]
        place = record.rules[0] if record.rules else ""
        own = by_rule.get(place, schedule) if record.schedule else schedule
        label = f"group {index} ({place})" if place else f"group {index}"
        curves.append(Curve(label, float(group["lr"]), own))
    return curves


def _of_node(
    optim: OptimConfig, schedule: Schedule, by_rule: dict[str, Schedule]
) -> list[Curve]:
    curves = [Curve("node", optim.lr, schedule)]
    for number, rule in enumerate(optim.param_groups):
        place = f"param_groups[{number}]"
        if place in by_rule or rule.keys() & {"lr", "lr_mult"}:
            lr = rule.get("lr", optim.lr * rule.get("lr_mult", 1.0))
            curves.append(Curve(place, lr, by_rule.get(place, schedule)))
    return curves


def lacks_steps(error: ConfigError, total: int) -> bool:
    """Whether all that is wrong is that nobody has said how long the run is."""
    return total == -1 and all(_asks_for_steps(problem) for problem in error.problems)


def _asks_for_steps(problem: Problem) -> bool:
    return problem.key.rpartition(".")[2] == "total_training_steps"


def merged(curves: Sequence[Curve]) -> list[Curve]:
    """Return each different curve once, with the labels of all that are like it."""
    labels: dict[tuple[float, str], list[Curve]] = {}
    for curve in curves:
        key = (curve.lr, str(curve.schedule.described()))
        labels.setdefault(key, []).append(curve)
    return [
        Curve(", ".join(c.label for c in same), same[0].lr, same[0].schedule)
        for same in labels.values()
    ]
