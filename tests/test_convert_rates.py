"""Rates of converted nodes are those that verl's engines would have had."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from torch import nn

import verl_configs as verl
from optim_hydra import build_lr_scheduler, build_optimizer

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
