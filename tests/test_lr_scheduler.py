"""`build_lr_scheduler` as a torch LRScheduler, on real optimizers."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from optim_hydra import ConfigError, build_lr_scheduler, build_optimizer
from optim_hydra.errors import OptimHydraWarning, WrongObjectError

COSINE = {
    "lr": 1e-3,
    "lr_scheduler_type": "cosine",
    "lr_warmup_steps": 10,
    "total_training_steps": 110,
    "min_lr_ratio": 0.1,
}


def build(module: nn.Module, config: Any, total: int | None = None):
    optimizer = build_optimizer(module, config)
    return optimizer, build_lr_scheduler(optimizer, config, total)


def rates(optimizer: torch.optim.Optimizer, scheduler: Any, steps: int) -> list[float]:
    seen = []
    for _ in range(steps):
        seen.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return seen


def test_it_is_an_lr_scheduler_that_sets_the_first_rate(module: nn.Module) -> None:
    optimizer, scheduler = build(module, COSINE)
    assert isinstance(scheduler, LRScheduler)
    assert optimizer.param_groups[0]["lr"] == 0.0
    assert optimizer.param_groups[0]["initial_lr"] == 1e-3
    assert scheduler.get_last_lr() == [0.0]


def test_it_equals_lambda_lr_with_the_same_factors(module: nn.Module) -> None:
    optimizer, scheduler = build(module, COSINE)
    other = torch.optim.AdamW(nn.Linear(4, 2).parameters(), lr=1e-3)
    reference = LambdaLR(other, scheduler.schedule.factor)
    assert rates(optimizer, scheduler, 120) == rates(other, reference, 120)


def test_ratios_between_groups_hold_at_every_step() -> None:
    first, second = nn.Linear(4, 2), nn.Linear(2, 1)
    groups = [
        {"params": list(first.parameters()), "lr": 1e-2},
        {"params": list(second.parameters())},
    ]
    optimizer, scheduler = build(groups, COSINE)
    for _ in range(115):
        high, low = (group["lr"] for group in optimizer.param_groups)
        assert high == pytest.approx(10 * low)
        optimizer.step()
        scheduler.step()


def test_the_trainer_gives_the_total_that_the_config_leaves_open(
    module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    config = {"lr_scheduler_type": "linear"}
    _, scheduler = build(module, config, total=20)
    assert scheduler.schedule.total == 20
    _, scheduler = build(module, {**config, "total_training_steps": 50}, total=20)
    assert scheduler.schedule.total == 50
    text = "total_training_steps is 50 in the config; the trainer's 20 is not used"
    assert text in caplog.text


def test_a_tensor_rate_stays_the_same_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    config = {**COSINE, "optimizer_impl": "torchao.optim", "optimizer": "_AdamW"}
    optimizer, scheduler = build(nn.Linear(4, 2), config)
    tensor = optimizer.param_groups[0]["lr"]
    seen = rates(optimizer, scheduler, 120)
    assert optimizer.param_groups[0]["lr"] is tensor
    expected = [1e-3 * scheduler.schedule.factor(k) for k in range(120)]
    assert seen == pytest.approx(expected)


def test_state_is_one_integer_with_plain_numbers(
    module: nn.Module, tmp_path: Path
) -> None:
    optimizer, scheduler = build(module, COSINE)
    rates(optimizer, scheduler, 35)
    state = scheduler.state_dict()
    assert json.loads(json.dumps(state)) == {
        "last_epoch": 35,
        "in_charge": True,
        "lr_scheduler_type": "cosine",
        "base_lrs": [1e-3],
        "lr_warmup_steps": 10,
        "total_training_steps": 110,
        "lr_warmup_init_ratio": 0.0,
        "zero_indexed_step": True,
        "min_lr_ratio": 0.1,
        "num_cycles": 0.5,
    }
    torch.save(state, tmp_path / "schedule.pt")
    assert torch.load(tmp_path / "schedule.pt", weights_only=True) == state


def test_loading_writes_the_rate_at_once(module: nn.Module) -> None:
    optimizer, scheduler = build(module, COSINE)
    rates(optimizer, scheduler, 35)
    resumed_optimizer, resumed = build(module, COSINE)
    resumed.load_state_dict(scheduler.state_dict())
    now = optimizer.param_groups[0]["lr"]
    assert now == pytest.approx(8.682e-4, abs=1e-8)
    assert resumed_optimizer.param_groups[0]["lr"] == now
    assert rates(resumed_optimizer, resumed, 90) == rates(optimizer, scheduler, 90)


def test_a_schedule_saved_with_other_numbers_is_reported(module: nn.Module) -> None:
    _, scheduler = build(module, COSINE)
    _, longer = build(module, {**COSINE, "lr": 5e-4, "total_training_steps": 200})
    with pytest.warns(OptimHydraWarning) as caught:
        longer.load_state_dict(scheduler.state_dict())
    assert str(caught[0].message) == (
        "the saved schedule differs, this run's is used: base_lrs [0.001] -> [0.0005],"
        " total_training_steps 110 -> 200"
    )


def test_it_pickles_with_its_optimizer(module: nn.Module) -> None:
    optimizer, scheduler = build(module, COSINE)
    rates(optimizer, scheduler, 20)
    copied = pickle.loads(pickle.dumps(scheduler))
    assert copied.get_last_lr() == scheduler.get_last_lr()
    assert rates(copied.optimizer, copied, 50) == rates(optimizer, scheduler, 50)


def test_past_the_end_one_log_line_says_that_the_rate_stays(
    module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    optimizer, scheduler = build(module, {**COSINE, "total_training_steps": 20})
    rates(optimizer, scheduler, 30)
    lines = [r.message for r in caplog.records if "past total" in r.message]
    assert lines == ["past total_training_steps=20 the rate stays"]


def test_a_long_warmup_is_logged_with_its_steps(
    module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    build(module, {"lr_warmup_steps_ratio": 0.95}, total=100)
    assert "the warmup takes 95 of 100 steps" in caplog.text


def test_unread_fields_only_warn_with_strict_false(module: nn.Module) -> None:
    config = {"num_cycles": 2.0, "strict": False}
    optimizer = build_optimizer(module, config)
    with pytest.warns(OptimHydraWarning) as caught:
        build_lr_scheduler(optimizer, config)
    text = "num_cycles is not read by the schedule constant"
    assert [str(w.message) for w in caught] == [text]


def test_a_plain_hydra_node_has_no_schedule(module: nn.Module) -> None:
    node = OmegaConf.create({"_target_": "torch.optim.SGD", "lr": 0.1})
    optimizer = build_optimizer(module, node)
    with pytest.raises(ConfigError) as caught:
        build_lr_scheduler(optimizer, node)
    assert str(caught.value) == (
        "the plain node _target_: torch.optim.SGD describes no schedule: use"
        " optimizer_impl and optimizer @ _target_"
    )


def test_the_optimizer_comes_first(module: nn.Module) -> None:
    with pytest.raises(WrongObjectError) as caught:
        build_lr_scheduler(COSINE, build_optimizer(module, COSINE))  # type: ignore[arg-type]
    assert str(caught.value) == (
        "the first argument is of type dict, not an optimizer:"
        " build_lr_scheduler(optimizer, config)"
    )


@pytest.mark.parametrize("total", [0, -5, 10.5, "many", True])
def test_a_total_from_the_trainer_is_checked_too(module: nn.Module, total: Any) -> None:
    optimizer = build_optimizer(module, COSINE)
    with pytest.raises(
        ConfigError, match=r"from the trainer: .* @ total_training_steps"
    ):
        build_lr_scheduler(optimizer, COSINE, total)
    assert optimizer.param_groups[0]["lr"] == 1e-3
