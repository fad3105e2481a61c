"""Own `build_lr_scheduler`: a node's schedule as a torch LRScheduler."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.checking import read_config
from optim_hydra.errors import (
    ConfigError,
    OptimHydraWarning,
    Problem,
    Problems,
    WrongObjectError,
    join_key,
)
from optim_hydra.journal import JOURNAL
from optim_hydra.node import read_node
from optim_hydra.rules import Count, Refused
from optim_hydra.schedule import OPTIONAL_FIELDS, Schedule, steps_of
from optim_hydra.schedule_plan import plan_schedule, unread_fields
from optim_hydra.schema import OptimConfig

__all__ = ["ScheduledLR", "build_lr_scheduler"]

log = logging.getLogger(__name__)
_LONG_WARMUP = 0.5


def build_lr_scheduler(
    optimizer: Optimizer, config: Any, total_training_steps: int | None = None
) -> ScheduledLR:
    """Build the learning-rate schedule that a config node describes.

    One step is one optimizer update: call `scheduler.step()` after each
    `optimizer.step()`. The rate for the first update is set right away.

    Args:
        optimizer: What `build_optimizer` returned for the same node.
        config: The node, in any form that `build_optimizer` takes.
        total_training_steps: Updates in all, warmup included; used where the node
            leaves `total_training_steps` at -1.

    Raises:
        ConfigError: The schedule needs a total that nobody gave, the warmup is
            longer than the run, or values are wrong; all of them are listed.
        WrongObjectError: An argument is of the wrong kind.

    Example:
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer
        >>> config = {"lr": 1e-3, "lr_scheduler_type": "cosine", "lr_warmup_steps": 10}
        >>> optimizer = build_optimizer(nn.Linear(4, 2), config)
        >>> scheduler = build_lr_scheduler(optimizer, config, total_training_steps=110)
        >>> scheduler.get_last_lr()
        [0.0]

    """
    given: object = optimizer
    if not isinstance(given, Optimizer):
        msg = (
            f"the first argument is of type {type(given).__name__}, not an optimizer:"
            " build_lr_scheduler(optimizer, config)"
        )
        raise WrongObjectError(msg)
    node = read_node(config)
    problems = Problems(node.at)
    if node.target:
        what = (
            f"the plain node _target_: {node.target} describes no schedule: use"
            " optimizer_impl and optimizer"
        )
        problems.add(what, "_target_")
        problems.raise_if_any()
    optim = read_config(node, problems)
    total = _total(optim.total_training_steps, total_training_steps, problems)
    if any("lr" not in group for group in optimizer.param_groups):
        what = (
            f"{type(optimizer).__name__} keeps no lr in its groups: nothing to schedule"
        )
        problems.add(what, "lr_scheduler_type")
    problems.raise_if_any()
    schedule = plan_schedule(optim, total, problems)
    for key in unread_fields(optim):
        text = f"{join_key(node.at, key)} is not read by the schedule {schedule.name}"
        warnings.warn(text, OptimHydraWarning, stacklevel=2)
    JOURNAL.scheduled.add(node.at)
    _tell(optim, schedule, node.at)
    return ScheduledLR(optimizer, schedule)


def _tell(optim: OptimConfig, schedule: Schedule, at: str) -> None:
    """Log what is allowed but rarely meant."""
    total, warmup = schedule.total, schedule.warmup
    if warmup > _LONG_WARMUP * total > 0:
        log.warning("%s: the warmup takes %d of %d steps", at, warmup, total)
    if warmup == 0:
        ratio = optim.lr_warmup_steps_ratio
        if ratio > 0 and optim.lr_warmup_steps != 0:
            text = "%s: lr_warmup_steps_ratio=%s of %d steps is no step"
            log.warning(text, at, ratio, total)
        if optim.lr_warmup_init_ratio > 0:
            log.warning("%s: without warmup lr_warmup_init_ratio has no effect", at)
    ratio = schedule.numbers.get("lr_decay_steps_ratio", 0.0)
    if ratio > 0 and steps_of(ratio, total) == 0:
        log.warning(
            "%s: lr_decay_steps_ratio=%s of %d steps is no step", at, ratio, total
        )


def _total(configured: int, given: int | None, problems: Problems) -> int:
    """Choose the number of steps: the config's, else the trainer's."""
    try:
        from_trainer = Count(low=1, null=True, also=(-1,))(given)
    except Refused as refused:
        problems.add(f"from the trainer: {refused}", "total_training_steps")
        return configured
    if configured == -1:
        return -1 if from_trainer is None else from_trainer
    if from_trainer not in (None, -1, configured):
        text = "%s is %d in the config; the trainer's %d is not used"
        log.info(text, join_key(problems.at, "total_training_steps"), configured, given)
    return configured


class ScheduledLR(LRScheduler):
    """Multiply each group's own lr by one factor a step.

    Ratios between groups hold at every step, a tensor lr stays the same tensor, and
    past the end the rate stays where it is. It pickles; its state is plain numbers
    and text: the step, and what the schedule is made of.
    """

    def __init__(self, optimizer: Optimizer, schedule: Schedule) -> None:
        """Set the rate for the first update."""
        self.schedule = schedule
        super().__init__(optimizer)

    def get_lr(self) -> list[float | Tensor]:
        """Return the rate of each group for the update that comes next.

        A group that was added later follows from its own lr.
        """
        if self.last_epoch == self.schedule.total + 1 > 0:
            log.info("past total_training_steps=%d the rate stays", self.schedule.total)
        return self._rates(self.last_epoch)

    def _rates(self, step: int) -> list[float | Tensor]:
        self._take_in_groups()
        factor = self.schedule.factor(step)
        return [base * factor for base in self.base_lrs]

    def _take_in_groups(self) -> None:
        for group in self.optimizer.param_groups[len(self.base_lrs) :]:
            self.base_lrs.append(group.setdefault("initial_lr", group["lr"]))

    def _is_in_charge(self) -> bool:
        """Whether the groups have this schedule's rates, and not another one's."""
        if self.last_epoch < 0:
            return False
        groups, rates = self.optimizer.param_groups, self._rates(self.last_epoch)
        pairs = zip(groups, rates, strict=True)
        return all(float(group["lr"]) == float(rate) for group, rate in pairs)

    def state_dict(self) -> dict[str, Any]:
        """Return the step and the numbers of the schedule."""
        state = {"last_epoch": self.last_epoch, "in_charge": self._is_in_charge()}
        return {**state, **self._identity()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on at a saved step, with this run's own schedule, and set its rate.

        A schedule that was saved with other numbers is reported, each with its old
        and new value.

        Raises:
            ConfigError: The state holds no step; nothing is changed.

        """
        step = _saved_step(state_dict)
        own = self._identity()
        changed = [
            f"{key} {state_dict[key]} -> {own[key]}"
            for key in own
            if key in state_dict and state_dict[key] != own[key]
        ]
        if changed:
            text = (
                f"the saved schedule differs, this run's is used: {', '.join(changed)}"
            )
            warnings.warn(text, OptimHydraWarning, stacklevel=2)
        # One that has not started or is done leaves the rate to whoever is in charge
        # (SequentialLR loads all of its schedules).
        in_charge = step >= 0 and state_dict.get("in_charge", True)
        rates = self._rates(step) if in_charge else []
        self.last_epoch = step
        self._step_count = step + 1
        for group, lr in zip(self.optimizer.param_groups, rates, strict=False):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        self._last_lr = [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _identity(self) -> dict[str, Any]:
        self._take_in_groups()
        schedule = self.schedule
        return {
            "lr_scheduler_type": schedule.name,
            "base_lrs": [float(lr) for lr in self.base_lrs],
            "warmup_steps": schedule.warmup,
            "total_training_steps": schedule.total,
            "lr_warmup_init_ratio": schedule.init_ratio,
            "zero_indexed_step": schedule.zero_indexed,
            **{k: v for k, v in schedule.numbers.items() if k in OPTIONAL_FIELDS},
        }


def _saved_step(state_dict: Any) -> int:
    found = state_dict.get("last_epoch") if isinstance(state_dict, Mapping) else None
    try:
        step = Count(low=0, also=(-1,))(found)
    except Refused as refused:
        what = f"the saved state of a schedule holds no step, last_epoch: {refused}"
        raise ConfigError([Problem(what, "", ConfigError)]) from refused
    return -1 if step is None else step


def _copied(lr: Any) -> Any:
    return lr.clone() if isinstance(lr, Tensor) else lr
