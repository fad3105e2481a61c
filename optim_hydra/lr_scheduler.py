"""Own `build_lr_scheduler`: a node's schedule as a torch LRScheduler."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from torch.optim import Optimizer

from optim_hydra.bound_schedule import Schedule
from optim_hydra.checking import read_config
from optim_hydra.errors import OptimHydraWarning, Problems, join_key
from optim_hydra.group_records import has_records, records_of
from optim_hydra.journal import JOURNAL
from optim_hydra.node import Node, read_node
from optim_hydra.references import hiding
from optim_hydra.schedule import steps_of
from optim_hydra.schedule_plan import plan_schedules
from optim_hydra.schedule_reads import unread_fields
from optim_hydra.scheduled_lr import ScheduledLR
from optim_hydra.schema import OptimConfig
from optim_hydra.unwrapping import unwrapped
from optim_hydra.value_checks import Count, Refused

__all__ = [
    "build_lr_scheduler",
    "check_rates",
    "mark_advanced",
    "read_schedule",
    "schedule_node",
]

log = logging.getLogger(__name__)
_LONG_WARMUP = 0.5
_ADVANCED = "_optim_hydra_advanced"


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
    hint = "build_lr_scheduler(optimizer, config)"
    bare = unwrapped(optimizer, "the first argument", hint)
    return schedule_node(bare, read_node(config), total_training_steps)


def schedule_node(
    optimizer: Optimizer, node: Node, total_training_steps: int | None
) -> ScheduledLR:
    """Build the schedule of a node that was read; see `build_lr_scheduler`."""
    with hiding(node.references):
        return _schedule_node(optimizer, node, total_training_steps)


def _schedule_node(
    optimizer: Optimizer, node: Node, total_training_steps: int | None
) -> ScheduledLR:
    problems = Problems(node.at)
    _check_free(optimizer, problems)
    optim, total = read_schedule(node, total_training_steps, problems)
    check_rates(optimizer, problems)
    schedule, by_rule = plan_schedules(optim, total, problems)
    own = {
        index: by_rule[record.rules[0]]
        for index, record in enumerate(records_of(optimizer))
        if record.schedule and record.rules[0] in by_rule
    }
    if by_rule and not has_records(optimizer):
        what = (
            "rules set schedules of their own, and this optimizer was not built from"
            " the node: build_optimizer(module, config) first"
        )
        problems.add(what, "param_groups")
        problems.raise_if_any()
    for key in unread_fields(optim):
        text = f"{join_key(node.at, key)} is not read by the schedule {schedule.name}"
        warnings.warn(text, OptimHydraWarning, stacklevel=3)
    JOURNAL.scheduled.add(node.at)
    _tell(optim, schedule, node.at or "optim")
    return ScheduledLR(optimizer, schedule, own)


def read_schedule(
    node: Node, total_training_steps: int | None, problems: Problems
) -> tuple[OptimConfig, int]:
    """Read a node's schedule fields and the number of steps; note what is wrong."""
    if node.target:
        what = (
            f"the plain node _target_: {node.target} describes no schedule: use"
            " optimizer_impl and optimizer"
        )
        problems.add(what, "_target_")
        return OptimConfig(), -1
    optim = read_config(node, problems)
    total = _total(optim.total_training_steps, total_training_steps, problems)
    return optim, total


def check_rates(optimizer: Optimizer, problems: Problems) -> None:
    """Note an optimizer without rates to schedule.

    Raises:
        ConfigError: With all problems, also those noted before.

    """
    if any("lr" not in group for group in optimizer.param_groups):
        what = (
            f"{type(optimizer).__name__} keeps no lr in its groups: nothing to schedule"
        )
        problems.add(what, "lr_scheduler_type")
    problems.raise_if_any()


def mark_advanced(optimizer: Optimizer, name: str) -> None:
    """Remember that a container advances an optimizer's schedule under a name."""
    vars(optimizer)[_ADVANCED] = name


def _check_free(optimizer: Optimizer, problems: Problems) -> None:
    name = vars(optimizer).get(_ADVANCED)
    if name is not None or getattr(optimizer, "lr_schedulers", None):
        what = "the container advances its schedules at each of its steps:"
        what += " container.lr_schedulers has them"
        problems.add(what, "lr_scheduler_type")
        problems.raise_if_any()


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
