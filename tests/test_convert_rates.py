"""Rates of converted nodes are those that verl's engines and the Trainer would have."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from torch import nn
from torch.optim import SGD
from transformers.optimization import (
    get_constant_schedule,
    get_cosine_with_min_lr_schedule_with_warmup,
    get_linear_schedule_with_warmup,
    get_wsd_schedule,
)

import verl_configs as verl
from optim_hydra import build_lr_scheduler, build_optimizer, convert_config

W, T = 4, 20
STEPS = {"lr_warmup_steps": W, "total_training_steps": T}


def warmed(init: float, decayed: Callable[[float], float]) -> list[float]:
    """Return verl's factors: from init to 1 in W steps, then what the share makes."""
    ramp = [init + (1.0 - init) * k / W for k in range(W)]
    return ramp + [decayed((k - W) / (T - W)) for k in range(W, T)]


def half_wave(floor: float) -> Callable[[float], float]:
    return lambda t: floor + (1.0 - floor) * (1.0 + math.cos(math.pi * t)) / 2.0


def exponential(t: float) -> float:
    u = max(t * (T - W) - (T - W - 8), 0.0) / 8
    return 0.1 + 0.9 * (2.0 * 0.5**u - 1.0)


RATES = {
    "fsdp": (
        verl.FSDPOptimizerConfig(lr_scheduler_type="cosine", min_lr_ratio=0.1, **STEPS),
        warmed(0.0, half_wave(0.1)),
    ),
    "fsdp, shifted": (
        verl.FSDPOptimizerConfig(
            lr_scheduler_type="cosine", zero_indexed_step=False, **STEPS
        ),
        [*warmed(0.0, half_wave(0.0))[1:], 0.0],
    ),
    "megatron": (
        verl.McoreOptimizerConfig(min_lr=1e-4, lr_warmup_init=5e-4, **STEPS),
        warmed(0.5, lambda t: 0.1 + 0.9 * (1.0 - t)),
    ),
    "megatron wsd": (
        verl.McoreOptimizerConfig(
            lr_decay_style="WSD", lr_wsd_decay_steps=8, min_lr=1e-4, **STEPS
        ),
        warmed(0.0, exponential),
    ),
    "veomni": (
        verl.VeOmniOptimizerConfig(
            lr_scheduler_type="cosine",
            lr_min=2e-4,
            lr_start=1e-4,
            lr_warmup_steps_ratio=0.2,
            total_training_steps=T,
        ),
        warmed(0.1, half_wave(0.2)),
    ),
    "torchtitan": (
        verl.TorchtitanOptimizerConfig(min_lr_factor=0.1, **STEPS),
        [
            *((k + 1) / W for k in range(W)),
            *(0.1 + 0.9 * (T - k) / (T - W) for k in range(W, T)),
        ],
    ),
    "torchtitan sqrt": (
        verl.TorchtitanOptimizerConfig(decay_type="sqrt", **STEPS),
        [
            *((k + 1) / W for k in range(W)),
            *(1.0 - math.sqrt((k - W) / (T - W)) for k in range(W, T)),
        ],
    ),
    "automodel": (
        verl.AutomodelOptimizerConfig(**STEPS),
        warmed(0.1, half_wave(0.01)),
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_its_rates_are_those_of_verl(name: str, module: nn.Module) -> None:
    config, factors = RATES[name]
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    found = []
    for _ in factors:
        found.append(scheduler.get_last_lr()[0] / config.lr)
        optimizer.step()
        scheduler.step()
    assert found == pytest.approx(factors, abs=1e-12)


TRAINER = {"learning_rate": 1e-3, "max_steps": T, "warmup_steps": W}
TRAINERS = {
    "linear": ({}, lambda o: get_linear_schedule_with_warmup(o, W, T)),
    "cosine": (
        {
            "lr_scheduler_type": "cosine_with_min_lr",
            "lr_scheduler_kwargs": {"min_lr": 1e-4},
        },
        lambda o: get_cosine_with_min_lr_schedule_with_warmup(o, W, T, min_lr=1e-4),
    ),
    "wsd": (
        {
            "lr_scheduler_type": "warmup_stable_decay",
            "lr_scheduler_kwargs": '{"num_decay_steps": 5, "min_lr_ratio": 0.1}',
        },
        lambda o: get_wsd_schedule(o, W, 5, T, min_lr_ratio=0.1),
    ),
    "a share of warmup": (
        {"warmup_steps": 0.16},  # 3.2 steps, rounded up
        lambda o: get_linear_schedule_with_warmup(o, 4, T),
    ),
    "no warmup": (
        {"lr_scheduler_type": "constant"},
        get_constant_schedule,
    ),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_its_rates_are_those_of_transformers(name: str, module: nn.Module) -> None:
    given, schedule = TRAINERS[name]
    config = convert_config({**TRAINER, **given}, "transformers")
    optimizer = build_optimizer(module, config)
    theirs = schedule(SGD(module.parameters(), lr=TRAINER["learning_rate"]))
    ours = build_lr_scheduler(optimizer, config)
    for _ in range(T):
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), abs=1e-12)
        for scheduler in (ours, theirs):
            scheduler.optimizer.step()
            scheduler.step()
