"""Own `build_lr_scheduler`: a node's schedule as a torch LRScheduler."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from torch.optim import Optimizer

from optim_hydra.checking import read_config
from optim_hydra.errors import (
    OptimHydraWarning,
    Problems,
    WrongObjectError,
    join_key,
)
from optim_hydra.journal import JOURNAL
from optim_hydra.node import read_node
from optim_hydra.rules import Count, Refused
from optim_hydra.schedule import Schedule, steps_of
from optim_hydra.schedule_plan import plan_schedule, unread_fields
from optim_hydra.scheduled_lr import ScheduledLR
from optim_hydra.schema import OptimConfig

__all__ = ["build_lr_scheduler"]

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

    Returns:
        A torch LRScheduler.

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
    _tell(optim, schedule, node.at or "optim")
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
