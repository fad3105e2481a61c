"""What an optimizer that steps in backward keeps: its copies, groups and parameters."""

from __future__ import annotations

import copy
import gc
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from backward_training import (
    COSINE,
    MUON,
    backward,
    layers,
    same,
    same_weights,
    train,
    trained,
)
from case_helpers import offer
from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.step_in_backward import StepInBackwardError


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("fields", [{}, MUON], ids=["one class", "container"])
def test_copies_update_their_own_parameters(copied, fields: dict[str, Any]) -> None:
    model, optimizer, scheduler = trained({**fields, "step_in_backward": True}, 3)
    other_model, other, follower = copied(copied((model, optimizer, scheduler)))
    train(other_model, other, follower, 2)
    expected, *_ = trained(fields, 3)
    assert same_weights(model, expected)
    train(model, optimizer, scheduler, 2)
    assert same_weights(model, other_model)
    assert all(parameter.grad is None for parameter in other_model.parameters())


def test_parameters_outlive_their_optimizer_without_being_updated() -> None:
    model = layers()
    optimizer = build_optimizer(model, {"step_in_backward": True})
    backward(model)
    optimizer.step()
    del optimizer
    gc.collect()
    before = copy.deepcopy(model)
    backward(model)
    assert same_weights(model, before)
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_groups_that_are_added_later_join_at_the_next_step() -> None:
    model, more = layers(), layers()
    optimizer = build_optimizer(model, {"step_in_backward": True, "lr": 0.1})
    named = [(f"more.{name}", p) for name, p in more.named_parameters()]
    optimizer.add_param_group({"params": named, "lr": 0.01})
    for step in range(2):
        before = copy.deepcopy(more)
        backward(model)
        backward(more)
        assert same_weights(more, before) == (step == 0)
        optimizer.step()
        assert not same_weights(more, before)
        optimizer.zero_grad()


def test_two_modules_update_in_their_own_backward() -> None:
    found = []
    for is_in_backward in (True, False):
        parts = {"actor": layers(), "critic": layers(5)}
        node = {**COSINE, "step_in_backward": is_in_backward}
        container = build_optimizers(
            parts, {"actor": node, "critic": {**node, "lr": 1}}
        )
        for _ in range(4):
            container.zero_grad()
            for part in parts.values():
                backward(part)
            container.step()
        found.append(nn.ModuleDict(parts))
    assert same_weights(*found)


class Counting(torch.optim.SGD):
    """Keeps a counter beside its groups, as some classes do."""

    num_steps = 0

    def step(self, closure=None):
        self.num_steps += 1
        return super().step(closure)


def test_what_a_class_counts_beside_its_groups_counts_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, "counting", Counting=Counting)
    node = {"optimizer_impl": "counting", "optimizer": "Counting"}
    _, optimizer, _ = trained({**node, "step_in_backward": True}, 5)
    assert isinstance(optimizer, Optimizer)
    assert optimizer.num_steps == 5


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(("first", "then"), [(True, False), (False, True)])
def test_checkpoints_go_both_ways(
    first: bool, then: bool, by_name: bool, tmp_path: Path
) -> None:
    model, optimizer, scheduler = trained({"step_in_backward": first}, 4)
    state = optimizer_state_dict(optimizer) if by_name else optimizer.state_dict()
    torch.save((state, scheduler.state_dict()), tmp_path / "saved.pt")
    saved, saved_schedule = torch.load(tmp_path / "saved.pt", weights_only=True)
    resumed_model, node = layers(), {**COSINE, "step_in_backward": then}
    resumed_model.load_state_dict(model.state_dict())
    resumed = build_optimizer(resumed_model, {**node, "on_resume": "strict"})
    follower = build_lr_scheduler(resumed, node)
    if by_name:
        assert not load_optimizer_state_dict(resumed, saved).differences
    else:
        resumed.load_state_dict(saved)
    follower.load_state_dict(saved_schedule)
    assert same(resumed.state_dict(), optimizer.state_dict())
    train(model, optimizer, scheduler, 3)
    train(resumed_model, resumed, follower, 3)
    assert same_weights(model, resumed_model)
    assert same(resumed.state_dict(), optimizer.state_dict())


def test_a_new_optimizer_takes_over_from_an_older_one() -> None:
    model = layers()
    older = build_optimizer(model, {"step_in_backward": True, "_full_key_": "optim"})
    newer = build_optimizer(model, {"step_in_backward": True, "lr": 0.1})
    backward(model)
    assert len(newer.state) == 4
    assert not older.state
    with pytest.raises(StepInBackwardError) as caught:
        older.step()
    assert str(caught.value) == (
        "another optimizer was built for these parameters and updates them in backward:"
        " this one no longer does @ optim.step_in_backward"
    )
    newer.step()
