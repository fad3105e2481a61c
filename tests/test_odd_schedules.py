"""Schedules that resume, grow, or stand beside torch's own."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR, SequentialLR

from case_helpers import sgd
from optim_hydra import (
    ConfigError,
    OptimHydraError,
    build_lr_scheduler,
    build_optimizer,
    register_schedule,
)


def test_sequential_schedules_resume_at_their_rate(module: nn.Module) -> None:
    def build() -> tuple[torch.optim.Optimizer, SequentialLR]:
        optimizer = build_optimizer(module, sgd(lr=1.0))
        first = build_lr_scheduler(optimizer, sgd(lr=1.0, lr_warmup_steps=4))
        linear = sgd(lr=1.0, lr_scheduler_type="linear", total_training_steps=10)
        second = build_lr_scheduler(optimizer, linear)
        return optimizer, SequentialLR(optimizer, [first, second], milestones=[5])

    optimizer, scheduler = build()
    for saved_at in range(9):
        state = copy.deepcopy(scheduler.state_dict())
        groups = copy.deepcopy(optimizer.state_dict())
        resumed_optimizer, resumed = build()
        resumed_optimizer.load_state_dict(groups)
        resumed.load_state_dict(state)
        for o, s in ((optimizer, scheduler), (resumed_optimizer, resumed)):
            o.step()
            s.step()
        rate = resumed_optimizer.param_groups[0]["lr"]
        assert rate == optimizer.param_groups[0]["lr"], saved_at
        assert 0.0 <= rate <= 1.0


@pytest.mark.parametrize(
    "state",
    [{}, None, [1], {"last_epoch": None}, {"last_epoch": "x"}, {"last_epoch": 3.7}],
)
def test_a_state_without_a_step_changes_nothing(module: nn.Module, state: Any) -> None:
    config = sgd(lr=1.0, lr_warmup_steps=4)
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    before = scheduler.state_dict()
    with pytest.raises(ConfigError, match="holds no step"):
        scheduler.load_state_dict(state)
    assert scheduler.state_dict() == before
    assert optimizer.param_groups[0]["lr"] == 0.0


def test_a_group_added_later_follows_from_its_own_rate(module: nn.Module) -> None:
    config = sgd(lr=1.0, lr_warmup_steps=4)
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    added = [("scale", nn.Parameter(torch.ones(1)))]
    optimizer.add_param_group({"params": added, "lr": 0.1})
    optimizer.step()
    scheduler.step()
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.25, 0.025])
    scheduler.load_state_dict({"last_epoch": 2})
    rates = [group["lr"] for group in optimizer.param_groups]
    assert rates == pytest.approx([0.5, 0.05])


@pytest.mark.parametrize(("warmup", "decay", "total"), [(0.5, 0.5, 5), (0.9, 0.1, 15)])
def test_ratios_that_sum_to_one_fit_any_total(
    module: nn.Module, warmup: float, decay: float, total: int
) -> None:
    config = sgd(
        lr=1.0,
        lr_scheduler_type="wsd",
        lr_warmup_steps_ratio=warmup,
        lr_decay_steps_ratio=decay,
    )
    optimizer = build_optimizer(module, config)
    schedule = build_lr_scheduler(optimizer, config, total).schedule
    assert schedule.factor(schedule.warmup) == 1.0
    assert schedule.factor(total) == 0.0


def test_a_schedule_that_fails_is_named(module: nn.Module) -> None:
    @register_schedule("odd")
    def odd(step: int) -> float:
        return 1.0 / (step - 2)

    optimizer = build_optimizer(module, sgd())
    scheduler = build_lr_scheduler(optimizer, sgd(lr_scheduler_type="odd"))
    optimizer.step()
    scheduler.step()
    with pytest.raises(OptimHydraError, match=r"schedule 'odd' fails at step 2: Zero"):
        scheduler.step()


def test_sequential_with_torchs_schedules_resumes_at_its_rate(module) -> None:
    def build() -> tuple[torch.optim.Optimizer, SequentialLR]:
        optimizer = build_optimizer(module, sgd(lr=1.0))
        warmup = build_lr_scheduler(optimizer, sgd(lr=1.0, lr_warmup_steps=4))
        after = ExponentialLR(optimizer, 0.9)
        return optimizer, SequentialLR(optimizer, [warmup, after], milestones=[4])

    optimizer, scheduler = build()
    for _ in range(10):
        optimizer.step()
        scheduler.step()
    resumed_optimizer, resumed = build()
    resumed_optimizer.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    for _ in range(3):
        rates = [o.param_groups[0]["lr"] for o in (optimizer, resumed_optimizer)]
        assert rates[0] == rates[1]
        for o, s in ((optimizer, scheduler), (resumed_optimizer, resumed)):
            o.step()
            s.step()


def test_a_registered_schedule_stays_past_the_end_too(module: nn.Module) -> None:
    @register_schedule("inverse")
    def inverse(step: int, *, total: int) -> float:
        return total / (step + total)

    config = sgd(lr=1.0, lr_scheduler_type="inverse", total_training_steps=3)
    schedule = build_lr_scheduler(build_optimizer(module, config), config).schedule
    assert [schedule.factor(k) for k in (0, 3, 4, 99)] == [1.0, 0.5, 0.5, 0.5]
