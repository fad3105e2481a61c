"""Schedules beside those of transformers, step by step, in one run."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import optimization

from optim_hydra import ConfigError, build_lr_scheduler, build_optimizer
from optim_hydra.schedule import SCHEDULES


@pytest.mark.parametrize("warmup", [0, 3, 10])
@pytest.mark.parametrize(
    ("name", "settings", "make"),
    [
        (
            "cosine_with_restarts",
            {"num_cycles": 3},
            lambda o, w: (
                optimization.get_cosine_with_hard_restarts_schedule_with_warmup(
                    o, w, 40, num_cycles=3
                )
            ),
        ),
        (
            "polynomial",
            {"lr_decay_power": 3.0, "min_lr_ratio": 0.1},
            lambda o, w: optimization.get_polynomial_decay_schedule_with_warmup(
                o, w, 40, lr_end=0.1 * 0.5, power=3.0
            ),
        ),
        (
            "inverse_sqrt",
            {},
            optimization.get_inverse_sqrt_schedule,
        ),
    ],
    ids=["restarts", "polynomial", "inverse_sqrt"],
)
def test_rates_are_those_of_transformers(name, settings, make, warmup: int) -> None:
    config = {
        "lr": 0.5,
        "lr_scheduler_type": name,
        "lr_warmup_steps": warmup,
        "total_training_steps": 40,
        **settings,
    }
    ours = build_optimizer(nn.Linear(2, 1), config)
    theirs = torch.optim.AdamW(nn.Linear(2, 1).parameters(), lr=0.5)
    schedulers = build_lr_scheduler(ours, config), make(theirs, warmup)
    for _ in range(40):
        rates = [each.param_groups[0]["lr"] for each in (ours, theirs)]
        assert rates[0] == pytest.approx(rates[1], rel=1e-12, abs=1e-12)
        for optimizer, scheduler in zip((ours, theirs), schedulers, strict=True):
            optimizer.step()
            scheduler.step()


@pytest.mark.parametrize("num_cycles", [0.5, 2.5])
def test_restarts_are_a_whole_number(num_cycles: float) -> None:
    config = {
        "lr_scheduler_type": "cosine_with_restarts",
        "num_cycles": num_cycles,
        "total_training_steps": 10,
    }
    optimizer = build_optimizer(nn.Linear(2, 1), config)
    with pytest.raises(ConfigError) as caught:
        build_lr_scheduler(optimizer, config)
    assert str(caught.value) == (
        f"cosine_with_restarts takes a whole number >= 1, not {num_cycles} @ num_cycles"
    )


def test_the_last_restart_ends_at_the_floor() -> None:
    config = {
        "lr": 1.0,
        "lr_scheduler_type": "cosine_with_restarts",
        "num_cycles": 2,
        "min_lr_ratio": 0.25,
        "total_training_steps": 8,
    }
    optimizer = build_optimizer(nn.Linear(2, 1), config)
    schedule = build_lr_scheduler(optimizer, config).schedule
    assert [schedule.factor(k) for k in (0, 4, 8, 9)] == [1.0, 1.0, 0.25, 0.25]
    assert schedule.factor(2) == pytest.approx(0.625)


def test_inverse_sqrt_needs_no_total() -> None:
    config = {"lr_scheduler_type": "inverse_sqrt", "lr_warmup_steps": 4}
    optimizer = build_optimizer(nn.Linear(2, 1), config)
    schedule = build_lr_scheduler(optimizer, config).schedule
    assert [schedule.factor(k) for k in (4, 16, 400)] == [1.0, 0.5, 0.1]


def test_every_schedule_is_of_this_library_or_registered_by_a_test() -> None:
    own = [n for n, f in SCHEDULES.items() if f.__module__ == "optim_hydra.schedule"]
    assert own == [
        "constant",
        "linear",
        "cosine",
        "cosine_with_restarts",
        "polynomial",
        "inverse_sqrt",
        "wsd",
    ]
