"""`clip_grad` is applied just before the step of the optimizer it belongs to."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from optim_hydra import build_optimizer, grad_norm

CONFIG = {"optimizer": "SGD", "lr": 1.0, "weight_decay": 0.0, "clip_grad": 0.5}


def loss_of(module: nn.Module) -> torch.Tensor:
    return (10 * module(torch.ones(3, 4))).square().mean()


def total_norm(module: nn.Module) -> float:
    norms = [p.grad.norm() for p in module.parameters() if p.grad is not None]
    return float(torch.stack(norms).norm())


def step_size(before: dict[str, torch.Tensor], module: nn.Module) -> float:
    moves = [(p.detach() - before[n]).norm() for n, p in module.named_parameters()]
    return float(torch.stack(moves).norm())


def snapshot(module: nn.Module) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in module.named_parameters()}


def test_the_step_uses_gradients_of_the_given_norm(module: nn.Module) -> None:
    optimizer = build_optimizer(module, CONFIG)
    assert grad_norm(optimizer) is None
    loss_of(module).backward()
    norm, before = total_norm(module), snapshot(module)
    optimizer.step()
    assert norm > 0.5
    assert step_size(before, module) == pytest.approx(0.5, rel=1e-5)
    assert grad_norm(optimizer) == pytest.approx(norm)


def test_smaller_gradients_are_left_alone(module: nn.Module) -> None:
    optimizer = build_optimizer(module, {**CONFIG, "clip_grad": 1e6})
    loss_of(module).backward()
    norm, before = total_norm(module), snapshot(module)
    optimizer.step()
    assert step_size(before, module) == pytest.approx(norm, rel=1e-5)


def test_null_clips_nothing(module: nn.Module) -> None:
    optimizer = build_optimizer(module, {**CONFIG, "clip_grad": None})
    loss_of(module).backward()
    norm, before = total_norm(module), snapshot(module)
    optimizer.step()
    assert step_size(before, module) == pytest.approx(norm, rel=1e-5)
    assert grad_norm(optimizer) is None


@pytest.mark.parametrize("as_keyword", [False, True])
def test_gradients_made_by_a_closure_are_clipped(
    module: nn.Module, as_keyword: bool
) -> None:
    optimizer = build_optimizer(module, CONFIG)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(module)
        loss.backward()
        return loss

    before = snapshot(module)
    expected = float(loss_of(module).detach())
    loss = optimizer.step(closure=closure) if as_keyword else optimizer.step(closure)
    assert loss.item() == pytest.approx(expected)
    assert step_size(before, module) == pytest.approx(0.5, rel=1e-5)


def test_lbfgs_is_clipped_at_each_of_its_evaluations(module: nn.Module) -> None:
    config = {"optimizer": "LBFGS", "lr": 0.1, "clip_grad": 0.5}
    optimizer = build_optimizer(module, config, provides=["closure"])
    norms: list[float] = []

    def closure() -> torch.Tensor:
        if module.weight.grad is not None:
            norms.append(total_norm(module))
        optimizer.zero_grad()
        loss = loss_of(module)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert len(norms) > 1
    assert max(norms) <= 0.5 + 1e-5


@pytest.mark.parametrize("fused", [False, True])
def test_it_clips_unscaled_gradients_under_a_grad_scaler(
    module: nn.Module, fused: bool
) -> None:
    config = {**CONFIG, "override_optimizer_config": {"fused": fused}}
    optimizer = build_optimizer(module, config)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(loss_of(module)).backward()
    norm, before = total_norm(module) / 1024.0, snapshot(module)
    scaler.step(optimizer)
    assert step_size(before, module) == pytest.approx(0.5, rel=1e-4)
    assert grad_norm(optimizer) == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_clip_too(module: nn.Module, copied) -> None:
    model, optimizer = copied((module, build_optimizer(module, CONFIG)))
    assert optimizer.param_groups[0]["params"][0] is model.weight
    loss_of(model).backward()
    norm, before = total_norm(model), snapshot(model)
    optimizer.step()
    assert step_size(before, model) == pytest.approx(0.5, rel=1e-5)
    assert grad_norm(optimizer) == pytest.approx(norm)


def test_copies_of_optimizers_that_do_not_clip_stay_as_they_are(
    module: nn.Module,
) -> None:
    build_optimizer(module, CONFIG)
    model, optimizer = copy.deepcopy((module, torch.optim.SGD(module.parameters(), 1)))
    loss_of(model).backward()
    norm, before = total_norm(model), snapshot(model)
    optimizer.step()
    assert step_size(before, model) == pytest.approx(norm, rel=1e-5)
