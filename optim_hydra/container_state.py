"""Save and restore a container: its optimizers and the schedules that it advances."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.checkpoint import optimizer_state_dict
from optim_hydra.errors import Problem
from optim_hydra.resume import load_optimizer_state_dict
from optim_hydra.saved_state import StateError
from optim_hydra.scheduled_lr import ScheduledLR

__all__ = ["container_state", "load_container_state"]

log = logging.getLogger(__name__)
_KIND = "lr_schedulers"


def container_state(
    container: Optimizer, lr_schedulers: Mapping[str, LRScheduler]
) -> dict[str, Any]:
    """Return the state of the optimizers by parameter name, and of the schedules."""
    flat = optimizer_state_dict(container, templates=True)
    for name, scheduler in lr_schedulers.items():
        for key, value in scheduler.state_dict().items():
            flat[f"{_KIND}.{name}.{key}"] = value
    return flat


def load_container_state(
    container: Optimizer, lr_schedulers: Mapping[str, LRScheduler], saved: Any
) -> None:
    """Restore what `container_state` returned; all of it is checked before any.

    Raises:
        ConfigError: The saved state does not fit; nothing is changed.

    """
    if not isinstance(saved, Mapping):
        what = f"the saved state is of type {type(saved).__name__}, not a mapping"
        raise StateError([Problem(what, "", StateError)])
    schedules: dict[str, dict[str, Any]] = {name: {} for name in lr_schedulers}
    for entry, value in saved.items():
        kind, _, rest = str(entry).partition(".")
        name, _, key = rest.rpartition(".")
        if kind == _KIND and name in schedules:
            schedules[name][key] = value
    _check(schedules, lr_schedulers)
    load_optimizer_state_dict(container, saved)
    for name, own in schedules.items():
        if own:
            lr_schedulers[name].load_state_dict(own)


def _check(
    schedules: Mapping[str, Mapping[str, Any]],
    lr_schedulers: Mapping[str, LRScheduler],
) -> None:
    found = [name for name, own in schedules.items() if own]
    lost = [name for name, own in schedules.items() if not own]
    if found and lost:
        what = f"the saved state has no schedule for {', '.join(lost)}"
        raise StateError([Problem(what, "", StateError)])
    if lost:
        text = "the saved state has no schedules: %s start at step 0"
        log.warning(text, ", ".join(lost))
    for name in found:
        scheduler = lr_schedulers[name]
        if isinstance(scheduler, ScheduledLR):
            scheduler.check_state(schedules[name])
