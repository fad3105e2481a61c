"""A rate that is a tensor: saved, loaded, and shared by groups of one schedule."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.scheduled_lr import ScheduledLR

LINEAR = {"lr": 0.1, "lr_scheduler_type": "linear", "total_training_steps": 10}
COMPILED = {**LINEAR, "compile_step": True}
GROUPS = {
    "param_groups": [
        {"pattern": "0.weight", "weight_decay": 0.3},
        {"pattern": "0.bias", "lr": 0.2},
        {"pattern": "1.weight", "lr_scheduler_type": "constant"},
    ]
}


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")


def layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))


def trained(
    node: dict[str, Any], num_steps: int = 3
) -> tuple[nn.Module, Optimizer, ScheduledLR]:
    model = layers()
    optimizer = build_optimizer(model, node)
    scheduler = build_lr_scheduler(optimizer, node)
    train(model, optimizer, scheduler, num_steps)
    return model, optimizer, scheduler


def train(model: nn.Module, optimizer: Any, scheduler: Any, num_steps: int) -> None:
    for _ in range(num_steps):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().mean().backward()
        optimizer.step()
        scheduler.step()


def rates(optimizer: Optimizer) -> list[float]:
    return [float(group["lr"]) for group in optimizer.param_groups]


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(("first", "then"), [(COMPILED, LINEAR), (LINEAR, COMPILED)])
def test_checkpoints_go_both_ways(
    first: dict[str, Any], then: dict[str, Any], by_name: bool, tmp_path: Path
) -> None:
    model, optimizer, scheduler = trained(first)
    state = optimizer_state_dict(optimizer) if by_name else optimizer.state_dict()
    torch.save((state, scheduler.state_dict()), tmp_path / "saved.pt")
    saved, saved_schedule = torch.load(tmp_path / "saved.pt", weights_only=True)
    resumed_model = layers()
    resumed_model.load_state_dict(model.state_dict())
    resumed = build_optimizer(resumed_model, {**then, "on_resume": "strict"})
    follower = build_lr_scheduler(resumed, then)
    if by_name:
        assert not load_optimizer_state_dict(resumed, saved).differences
    else:
        resumed.load_state_dict(saved)
    follower.load_state_dict(saved_schedule)
    assert isinstance(resumed.param_groups[0]["lr"], Tensor) == (then is COMPILED)
    assert rates(resumed) == rates(optimizer) == [pytest.approx(0.07)]
    train(model, optimizer, scheduler, 3)
    train(resumed_model, resumed, follower, 3)
    assert rates(resumed) == rates(optimizer)
    for own, other in zip(model.parameters(), resumed_model.parameters(), strict=True):
        torch.testing.assert_close(own, other)


def test_what_torch_saves_of_it_has_plain_rates() -> None:
    _, optimizer, _ = trained(COMPILED)
    (group,) = optimizer.state_dict()["param_groups"]
    assert type(group["lr"]) is type(group["initial_lr"]) is float
    assert isinstance(optimizer.param_groups[0]["lr"], Tensor)


def test_groups_with_one_rate_and_one_schedule_share_a_tensor() -> None:
    _, optimizer, scheduler = trained({**COMPILED, **GROUPS})
    _, plain, _ = trained({**LINEAR, **GROUPS})
    ids = [id(group["lr"]) for group in optimizer.param_groups]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert rates(optimizer) == rates(plain) == pytest.approx([0.07, 0.07, 0.14, 0.1])
    assert [float(rate) for rate in scheduler.get_last_lr()] == rates(optimizer)


def test_a_users_tensors_are_shared_too_unless_they_differ_in_kind() -> None:
    model = layers()
    tensors = [torch.tensor(0.1, dtype=kind) for kind in (None, None, torch.float64)]
    tensors.append(torch.tensor([0.1]))
    groups = [
        {"params": [parameter], "lr": tensor}
        for parameter, tensor in zip(model.parameters(), tensors, strict=True)
    ]
    optimizer = build_optimizer(groups, {**LINEAR, "optimizer": "SGD"})
    scheduler = build_lr_scheduler(optimizer, LINEAR)
    held = [group["lr"] for group in optimizer.param_groups]
    assert held[0] is held[1] is tensors[0]
    assert held[2] is tensors[2]
    assert held[3] is tensors[3]
    optimizer.step()
    scheduler.step()
    assert rates(optimizer) == [pytest.approx(0.09)] * 4


def test_one_tensor_that_gets_two_rates_is_parted() -> None:
    """Groups that shared one when they were saved may differ in this run."""
    _, optimizer, scheduler = trained({**COMPILED, "no_decay": ["bias"]})
    lr = optimizer.param_groups[0]["lr"]
    assert lr is optimizer.param_groups[1]["lr"]
    scheduler.base_lrs = [0.1, 0.2]
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert rates(optimizer) == pytest.approx([0.06, 0.12])


def test_a_load_that_changes_one_group_leaves_those_that_shared_its_rate() -> None:
    node = {**COMPILED, "no_decay": ["bias"]}
    _, optimizer, _ = trained(node)
    saved = {
        key: value
        for key, value in optimizer_state_dict(optimizer).items()
        if ".bias" not in key and "0.bias" not in key
    }
    _, resumed, _ = trained(node, num_steps=1)
    assert rates(resumed) == pytest.approx([0.09, 0.09])
    load_optimizer_state_dict(resumed, saved, missing="fresh")
    assert rates(resumed) == pytest.approx([0.07, 0.09])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rates_are_those_of_lambda_lr(dtype: torch.dtype) -> None:
    found = []
    for is_ours in (True, False):
        optimizer = build_optimizer(layers(), {**LINEAR, "no_decay": ["bias"]})
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(0.1, dtype=dtype)
        scheduler: Any = build_lr_scheduler(copy.deepcopy(optimizer), LINEAR)
        factor = scheduler.schedule.factor
        if is_ours:
            scheduler = build_lr_scheduler(optimizer, LINEAR)
        else:
            scheduler = LambdaLR(optimizer, factor)
        seen = []
        for _ in range(12):
            seen.append(rates(optimizer))
            optimizer.step()
            scheduler.step()
        found.append(seen)
    assert found[0] == found[1]
