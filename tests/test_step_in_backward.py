"""`step_in_backward`: updates in backward, bit for bit those of the ordinary loop."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

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
from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
)

MOMENTUM = {"optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}}
GROUPS = {"no_decay": ["bias"], "param_groups": [{"pattern": "2.*", "lr_mult": 0.5}]}
SCHEDULE_FREE = {"optimizer_impl": "schedulefree", "optimizer": "AdamWScheduleFree"}
ADABELIEF = {"optimizer_impl": "pytorch_optimizer", "optimizer": "AdaBelief"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"implementation": "for-loop"},
        {"implementation": "foreach"},
        {"implementation": "fused"},
        {"optimizer": "SGD"},
        MOMENTUM,
        {**MOMENTUM, "implementation": "fused"},
        GROUPS,
        MUON,
        SCHEDULE_FREE,  # which counts its steps in its groups
        ADABELIEF,
    ],
    ids=str,
)
def test_weights_and_state_are_those_of_the_ordinary_loop(
    fields: dict[str, Any],
) -> None:
    model, optimizer, _ = trained({**fields, "step_in_backward": True})
    expected_model, expected, _ = trained(fields)
    assert same_weights(model, expected_model)
    assert same(optimizer.state_dict(), expected.state_dict())
    assert type(optimizer) is type(expected)


def test_an_update_has_the_rate_of_its_iteration() -> None:
    model = layers()
    node = {**COSINE, "optimizer": "SGD", "weight_decay": 0.0}
    optimizer = build_optimizer(model, {**node, "step_in_backward": True})
    scheduler = LambdaLR(optimizer, lambda step: [1.0, 0.0, 0.5][step])
    moves = []
    for _ in range(3):
        before = [p.detach().clone() for p in model.parameters()]
        backward(model)
        moves.append(not all(map(torch.equal, before, model.parameters())))
        optimizer.step()
        scheduler.step() if len(moves) < 3 else None
    assert moves == [True, False, True]


def test_no_more_than_one_gradient_is_kept_at_a_time() -> None:
    kept: dict[bool, list[int]] = {}
    for is_in_backward in (True, False):
        model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
        sizes: list[int] = []

        def note(_: Tensor, model: Any = model, sizes: Any = sizes) -> None:
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            sizes.append(sum(g.untyped_storage().nbytes() for g in grads))

        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(note)
        optimizer = build_optimizer(model, {"step_in_backward": is_in_backward})
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(1, 8)).sum().backward()
            optimizer.step()
        kept[is_in_backward] = sizes
        assert all((p.grad is None) == is_in_backward for p in model.parameters())
    whole = 6 * (8 * 8 + 8) * 4
    assert max(kept[False]) == whole
    assert max(kept[True]) == 8 * 8 * 4


def test_hooks_run_once_a_step_and_see_no_gradients() -> None:
    model = layers()
    optimizer = build_optimizer(model, {"step_in_backward": True})
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    for _ in range(2):
        backward(model)
        assert not seen
        assert all(parameter.grad is None for parameter in model.parameters())
        before = copy.deepcopy(model)
        optimizer.step()
        assert seen == ["before", "after"]
        assert same_weights(model, before)
        seen.clear()


def test_a_closure_makes_the_update_while_it_runs() -> None:
    model, plain_model = layers(), layers()
    node = {**MOMENTUM, "lr": 0.1}
    optimizer = build_optimizer(model, {**node, "step_in_backward": True})
    plain = build_optimizer(plain_model, node)
    for each, module in ((optimizer, model), (plain, plain_model)):

        def closure(each: Any = each, module: Any = module) -> Tensor:
            each.zero_grad()
            loss = module(torch.ones(3, 4)).square().sum()
            loss.backward()
            return loss

        losses = [float(each.step(closure).detach()) for _ in range(3)]
        assert losses[2] != losses[0]
    assert same_weights(model, plain_model)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
        self.head.weight = self.first.weight

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.first(self.first(inputs).tanh()).tanh())


def test_a_tied_parameter_is_updated_once_by_its_whole_gradient() -> None:
    found = []
    for is_in_backward in (True, False):
        model = Tied()
        node = {**COSINE, "step_in_backward": is_in_backward}
        optimizer = build_optimizer(model, node)
        train(model, optimizer, build_lr_scheduler(optimizer, node), 4)
        found.append(model)
    assert same_weights(*found)


def test_sparse_gradients_are_updated_too() -> None:
    found = []
    for is_in_backward in (True, False):
        torch.manual_seed(0)
        model = nn.Embedding(6, 3, sparse=True)
        node = {"optimizer": "SparseAdam", "step_in_backward": is_in_backward}
        optimizer = build_optimizer(model, node, provides="sparse_gradients")
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.tensor([1, 4, 4])).square().sum().backward()
            optimizer.step()
        found.append(model)
    assert same_weights(*found)
