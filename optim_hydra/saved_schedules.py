"""Save and restore the schedules that a container advances, beside its state."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.errors import ConfigError, OptimHydraWarning
from optim_hydra.put_back import schedules_in
from optim_hydra.resume_values import Difference
from optim_hydra.saved_kinds import kind_problem
from optim_hydra.scheduled_lr import POLICY, ScheduledLR

__all__ = [
    "load_schedules",
    "saved_schedules",
    "schedule_differences",
    "schedule_entries",
]

log = logging.getLogger(__name__)
_KIND = "lr_schedulers"
_TAKEN = "checkpoint"
_Saved = Mapping[str, dict[str, Any]]


def _schedulers(optimizer: Optimizer) -> Mapping[str, LRScheduler]:
    found: Mapping[str, LRScheduler] = getattr(optimizer, "lr_schedulers", {})
    return found


def schedule_entries(optimizer: Optimizer) -> dict[str, Any]:
    """Return `lr_schedulers.{name}.{key}` -> value; nothing for a plain optimizer."""
    return {
        f"{_KIND}.{name}.{key}": value
        for name, scheduler in _schedulers(optimizer).items()
        for key, value in scheduler.state_dict().items()
    }


def saved_schedules(
    optimizer: Optimizer,
    saved: Mapping[Any, Any],
    problems: list[str],
    *,
    allow_missing: bool,
) -> _Saved:
    """Return what was saved of each schedule, and note what does not fit.

    Where nothing was saved of any, as torchtitan does it, all start at step 0 and the
    log says so.
    """
    own = _schedulers(optimizer)
    found: dict[str, dict[str, Any]] = {name: {} for name in own}
    strange: dict[str, None] = {}
    start = f"{_KIND}."
    for entry in [e for e in saved if isinstance(e, str) and e.startswith(start)]:
        name, _, key = entry.removeprefix(start).rpartition(".")
        if name in found:
            found[name][key] = saved[entry]
        else:
            strange[name] = None
    if strange:
        text = "the saved schedules of %s were left out: no schedule is in here for it"
        log.warning(text, ", ".join(strange))
    _note(own, found, problems, allow_missing=allow_missing)
    return {name: state for name, state in found.items() if state}


def _note(
    own: Mapping[str, LRScheduler],
    found: _Saved,
    problems: list[str],
    *,
    allow_missing: bool,
) -> None:
    lost = [name for name, state in found.items() if not state]
    if lost and len(lost) < len(found) and not allow_missing:
        problems.append(f"the saved state has no schedule for {', '.join(lost)}")
    elif lost:
        text = "the saved state has no schedule for %s: it starts at step 0"
        log.warning(text, ", ".join(lost))
    for name, state in found.items():
        scheduler = own[name]
        if state and isinstance(scheduler, ScheduledLR):
            try:
                scheduler.check_state(state)
            except ConfigError as error:
                problems.append(f"{name}: {error}")
        elif state:
            problems += _misfits(name, state, scheduler)


def _misfits(name: str, state: Mapping[str, Any], own: LRScheduler) -> list[str]:
    """Say why a schedule of torch would not load what was saved."""
    due = own.state_dict()
    if state.keys() != due.keys():
        return [f"the saved schedule of {name} is none of {type(own).__name__}"]
    entries = ((key, f"{_KIND}.{name}.{key}") for key in due)
    found = (kind_problem(state[key], due[key], entry) for key, entry in entries)
    return [what for what in found if what]


def schedule_differences(optimizer: Optimizer, found: _Saved) -> list[Difference]:
    """List what the schedules were saved with otherwise, by container's name."""
    return [
        Difference(
            key, old, new, [name], vars(scheduler.optimizer).get(POLICY) == _TAKEN
        )
        for name, state in found.items()
        if isinstance(scheduler := _schedulers(optimizer)[name], ScheduledLR)
        for key, old, new in scheduler.differences(state)
        if key not in ("base_lrs", "lr")  # said of the groups
    ]


def load_schedules(optimizer: Optimizer, found: _Saved) -> None:
    """Restore what `saved_schedules` returned."""
    for name, state in found.items():
        scheduler = _schedulers(optimizer)[name]
        with warnings.catch_warnings():
            # The report of the load has it.
            warnings.simplefilter("ignore", OptimHydraWarning)
            scheduler.load_state_dict(copy.deepcopy(state))
        if not isinstance(scheduler, ScheduledLR):
            _settle(scheduler, state)


def _settle(scheduler: LRScheduler, state: Mapping[str, Any]) -> None:
    """Let a schedule of torch go on from the rates that the groups start from.

    It saves those of the run that was saved, one for each of its groups.
    """
    # SequentialLR has none itself, and its schedules have the same.
    parts = [state, *(state.get("_schedulers") or ())]
    bases = next((part["base_lrs"] for part in parts if part.get("base_lrs")), None)
    rates = state.get("_last_lr")
    if not bases or not rates or not float(bases[0]):
        return
    factor = float(rates[0]) / float(bases[0])
    groups = scheduler.optimizer.param_groups
    if len(bases) == len(groups):
        factors = [
            float(r) / float(b) if b else factor
            for r, b in zip(rates, bases, strict=True)
        ]
    else:
        factors = [factor] * len(groups)
    own = [group["initial_lr"] for group in groups]
    for each in schedules_in(scheduler):
        if "base_lrs" in vars(each):  # one that is made of others has none
            each.base_lrs = list(own)
    for group, base, share in zip(groups, own, factors, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(float(base) * share)
        else:
            group["lr"] = base * share
    scheduler._last_lr = [group["lr"] for group in groups]
