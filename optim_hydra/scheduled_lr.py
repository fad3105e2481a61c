"""Own the LRScheduler around a schedule."""

from __future__ import annotations

import itertools
import logging
import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.bound_schedule import Schedule
from optim_hydra.errors import ConfigError, OptimHydraWarning, Problem
from optim_hydra.rate_tensors import products, share_rates, shared, write_rates
from optim_hydra.schedule_checks import (
    GROUP,
    check_kinds,
    check_usable,
    saved_step,
    schedules_of,
)

__all__ = ["POLICY", "RATES_TAKEN", "ScheduledLR"]

log = logging.getLogger(__name__)
# Set on an optimizer that was restored with `on_resume: checkpoint`; a new object each
# time, so that a schedule, loaded before or after, takes those rates over once.
RATES_TAKEN = "_optim_hydra_rates_taken"
# What its node says about resuming.
POLICY = "_optim_hydra_on_resume"
# The first sets the rate, and at the second torch tells whether an update was made.
_CHECKED_STEPS = 2


class ScheduledLR(LRScheduler):
    """Multiply each group's own lr by one factor a step.

    Ratios between groups hold at every step, and past the end the rate stays where it
    is. A tensor lr stays a tensor, and groups with one lr and one schedule share it. It
    pickles; its state is plain numbers and text: the step, whether the groups had its
    rates, and what it is made of.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedule: Schedule,
        own: Mapping[int, Schedule] | None = None,
    ) -> None:
        """Set the rate for the first update.

        Args:
            optimizer: Whose groups get the rates.
            schedule: Of every group that has none of its own.
            own: Position of a group -> the schedule of its rule.

        """
        self.schedule = schedule
        self.own = dict(own or {})
        self._taken: object = None
        super().__init__(optimizer)
        bases = enumerate(self.base_lrs)
        alike = [(float(base), id(self.own.get(index))) for index, base in bases]
        share_rates(optimizer.param_groups, alike)

    def step(self, epoch: int | None = None) -> None:
        """Set the rates for the next update, a tensor that groups share once."""
        if self._step_count == 0:
            self.base_lrs = shared(self.base_lrs)
        if self._step_count < _CHECKED_STEPS or epoch is not None:
            super().step(epoch)  # which looks at the order of the calls
            rates = self._rates(self.last_epoch)
        else:
            self._step_count += 1
            self.last_epoch += 1
            rates = self.get_lr()
        self._last_lr = write_rates(self.optimizer.param_groups, rates)

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
        if not self.own:
            return products(self.base_lrs, itertools.repeat(factor))
        factors = dict.fromkeys(range(len(self.base_lrs)), factor)
        factors |= {index: own.factor(step) for index, own in self.own.items()}
        return products(self.base_lrs, factors.values())

    def _take_in_groups(self) -> None:
        taken = vars(self.optimizer).get(RATES_TAKEN)
        if taken is not self._taken:
            self._taken = taken
            if taken is not None:
                groups = self.optimizer.param_groups
                self.base_lrs = shared([_base(group) for group in groups])
        for group in self.optimizer.param_groups[len(self.base_lrs) :]:
            self.base_lrs.append(_base(group))

    def _is_in_charge(self) -> bool:
        """Whether the groups have this schedule's rates, and not another one's."""
        if self.last_epoch < 0:
            return False
        groups, rates = self.optimizer.param_groups, self._rates(self.last_epoch)
        pairs = zip(groups, rates, strict=True)
        return all(float(group["lr"]) == float(rate) for group, rate in pairs)

    def state_dict(self) -> dict[str, Any]:
        """Return the step, whether it was in charge, and what it is made of."""
        state = {"last_epoch": self.last_epoch, "in_charge": self._is_in_charge()}
        return {**state, **self._identity()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on at a saved step and set its rate.

        A schedule that was saved with other numbers is reported, each with its old
        and new value. The node's `on_resume` says whose schedule goes on: this run's
        (`config`), or the saved one (`checkpoint`); with `strict` it is an error.

        Raises:
            ConfigError: The state holds no step, or differs; nothing is changed.

        """
        self.check_state(state_dict)
        step = saved_step(state_dict)
        changed = self.differences(state_dict)
        if changed:
            self._settle(changed, state_dict)
        # One that has not started or is done leaves the rate to whoever is in charge
        # (SequentialLR loads all of its schedules).
        in_charge = step >= 0 and state_dict.get("in_charge", True)
        rates = self._rates(step) if in_charge else []
        self.last_epoch = step
        self._step_count = step + 1
        write_rates(self.optimizer.param_groups, rates)
        self._last_lr = [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def check_state(self, state_dict: Mapping[str, Any]) -> None:
        """Check what `load_state_dict` would refuse.

        Raises:
            ConfigError: It holds no step, or differs where `on_resume` is strict, or
                can't be used where that is checkpoint.

        """
        step = saved_step(state_dict)
        check_kinds(state_dict)
        changed = self.differences(state_dict)
        policy = vars(self.optimizer).get(POLICY)
        if changed and policy == "checkpoint" and "lr_warmup_steps" in state_dict:
            self._check_groups(state_dict)
            check_usable(state_dict, len(self.base_lrs), step)
        if changed and policy == "strict":
            what = (
                f"the saved schedule differs: {_shown(changed)}; on_resume is strict:"
            )
            what += " config keeps this run's, checkpoint takes the saved"
            raise ConfigError([Problem(what, "on_resume", ConfigError)])

    def _check_groups(self, state_dict: Mapping[str, Any]) -> None:
        """Refuse schedules of rules that were saved of other groups."""
        own = self._identity()
        keys = {key for key in (*state_dict, *own) if key.startswith(GROUP)}
        num_saved, num = (len(state.get("base_lrs", ())) for state in (state_dict, own))
        if keys and num_saved != num:
            what = (
                "rules have schedules of their own, saved with"
                f" {num_saved} groups, and this run has {num}: use on_resume: config"
            )
            raise ConfigError([Problem(what, "on_resume", ConfigError)])

    def differences(self, state_dict: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
        """List key, saved and own value of what a schedule was saved with otherwise."""
        own = self._identity()
        saved = {key: state_dict[key] for key in own if key in state_dict}
        for key in sorted({*own, *state_dict}):
            if key.startswith(GROUP):  # one side may have rules that the other has not
                own.setdefault(key, None)
                saved.setdefault(key, state_dict.get(key))
        if len(own["base_lrs"]) != len(saved.get("base_lrs", ())):
            # Other groups; their rates may be the same.
            for each in (own, saved):
                each["base_lrs"] = sorted(set(each.get("base_lrs", own["base_lrs"])))
        return [(k, saved[k], own[k]) for k in saved if saved[k] != own[k]]

    def _settle(
        self, changed: list[tuple[str, Any, Any]], state_dict: Mapping[str, Any]
    ) -> None:
        """Do what `on_resume` says about a schedule with other numbers."""
        policy = vars(self.optimizer).get(POLICY, "config")
        text = f"the saved schedule differs: {_shown(changed)}"
        if policy == "checkpoint" and "lr_warmup_steps" in state_dict:
            self.schedule, *_ = schedules_of(state_dict)
            self.own = {
                int(key.removeprefix(GROUP)): Schedule.of(value)
                for key, value in state_dict.items()
                if key.startswith(GROUP)
            }
            text = text.replace("differs:", "differs, it is used:")
        else:
            text = text.replace("differs:", "differs, this run's is used:")
        warnings.warn(text, OptimHydraWarning, stacklevel=3)

    def _identity(self) -> dict[str, Any]:
        self._take_in_groups()
        rates = [float(lr) for lr in self.base_lrs]
        identity: dict[str, Any] = {"lr_scheduler_type": self.schedule.name}
        identity["base_lrs"] = rates
        identity |= self.schedule.described()
        for index, own in self.own.items():
            identity[f"{GROUP}{index}"] = own.described()
        return identity


def _shown(changed: list[tuple[str, Any, Any]]) -> str:
    return ", ".join(f"{key} {old} -> {new}" for key, old, new in changed)


def _base(group: dict[str, Any]) -> Any:
    """Return a group's own lr, of which a tensor is copied."""
    return group.setdefault("initial_lr", _copied(group["lr"]))


def _copied(lr: Any) -> Any:
    return lr.clone() if isinstance(lr, Tensor) else lr
