"""What one step of a container is, as public bug reports met it.

Cases: B63.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from case_helpers import Compose, exact, train_once
from optim_hydra import (
    ConfigError,
    OptimizersContainer,
    build_lr_scheduler,
    build_optimizers,
)

TWO_PARTS = """\
actor:
  optim: {lr: 1e-3, lr_scheduler_type: cosine, total_training_steps: 100,
          min_lr_ratio: 0.1}
critic:
  optim: {lr: 1e-2, lr_scheduler_type: cosine, total_training_steps: 50,
          min_lr_ratio: 0.1}
"""


def two_parts() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"actor": nn.Linear(4, 2), "critic": nn.Linear(4, 2)}


def rates_of(container: OptimizersContainer) -> list[float]:
    return [group["lr"] for group in container.param_groups]


@pytest.mark.parametrize("num_passes", [1, 4])
def test_B63_each_schedule_advances_once_a_container_step(
    num_passes: int, compose: Compose
) -> None:
    parts = two_parts()
    container = build_optimizers(parts, compose(yaml=TWO_PARTS))
    for _ in range(50):
        container.zero_grad()
        for _ in range(num_passes):
            sum(part(torch.ones(3, 4)).sum() for part in parts.values()).backward()
        container.step()
    assert rates_of(container) == exact(5.5e-4, 1e-3)
    steps = {name: s.last_epoch for name, s in container.lr_schedulers.items()}
    assert steps == {"actor": 50, "critic": 50}


def test_B63_an_update_that_is_skipped_does_not_advance_it(compose: Compose) -> None:
    parts = two_parts()
    container = build_optimizers(parts, compose(yaml=TWO_PARTS))
    scaler = torch.amp.GradScaler("cpu")
    for number in range(50):
        container.zero_grad()
        loss = sum(part(torch.ones(3, 4)).sum() for part in parts.values())
        scaler.scale(loss).backward()
        if number % 2:
            parts["critic"].weight.grad[0, 0] = torch.inf
        scaler.step(container)
        scaler.update()
    assert {s.last_epoch for s in container.lr_schedulers.values()} == {25}
    assert rates_of(container)[1:] == exact(5.5e-3)


def test_B63_kin_a_schedule_of_ones_own_would_count_twice_and_is_refused(
    compose: Compose,
) -> None:
    config = compose(yaml=TWO_PARTS)
    container = build_optimizers(two_parts(), config)
    for optimizer, optim in [
        (container, config.actor.optim),
        (container["critic"], config.critic.optim),
    ]:
        with pytest.raises(ConfigError, match=r"container\.lr_schedulers has them"):
            build_lr_scheduler(optimizer, optim)


def test_B63_kin_a_part_of_two_classes_has_one_schedule(compose: Compose) -> None:
    rules = "[{pattern: weight, optimizer: Muon, lr: 0.02}]"
    config = compose(f"actor.optim.param_groups={rules}", yaml=TWO_PARTS)
    parts = two_parts()
    container = build_optimizers(parts, config)
    for _ in range(50):
        train_once(container, *parts.values())
    assert rates_of(container) == exact(5.5e-4, 0.011, 1e-3)


@pytest.mark.parametrize("name", ["linear", "wsd"])
def test_B63_kin_the_trainers_total_is_in_updates(name: str, compose: Compose) -> None:
    schedule = [f"{part}.optim.lr_scheduler_type={name}" for part in two_parts()]
    parts = two_parts()
    container = build_optimizers(parts, compose(*schedule), total_training_steps=20)
    for _ in range(20):
        assert min(rates_of(container)) > 0.0
        train_once(container, *parts.values())
    assert rates_of(container) == exact(0.0, 0.0)


def test_B63_kin_a_closure_that_is_called_often_counts_once() -> None:
    optim: dict[str, Any] = {"optimizer": "LBFGS", "lr": 0.1}
    schedule = {"lr_scheduler_type": "linear", "total_training_steps": 10}
    module = nn.Linear(4, 2)
    container = build_optimizers(
        {"actor": module}, {"actor": {**optim, **schedule}}, provides="closure"
    )
    calls = []

    def closure() -> torch.Tensor:
        container.zero_grad()
        loss = module(torch.ones(3, 4)).square().sum()
        loss.backward()
        calls.append(loss)
        return loss

    container.step(closure)
    assert len(calls) > 2
    assert rates_of(container) == exact(0.09)
