"""A step of a container, or of its copy, does what torchtitan's tests pin."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import CyclicLR, LambdaLR, OneCycleLR

from case_helpers import exact, train_once
from optim_hydra import OptimHydraError, OptimizersContainer, build_optimizers
from wrapped_models import three_layers

LINEAR = {"lr_scheduler_type": "linear", "total_training_steps": 10}


class Calling(OptimizersContainer):
    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


def two_parts() -> dict[str, nn.Module]:
    return {"actor": three_layers(), "critic": three_layers()}


def container_of(
    parts: dict[str, nn.Module], **fields: Any
) -> OptimizersContainer[Optimizer]:
    plain = {"optimizer": "SGD", "weight_decay": 0.0, "lr": 0.1, **fields}
    return build_optimizers(parts, {"actor": plain, "critic": {"lr": 0.01}})


def parameters_of(parts: dict[str, nn.Module]) -> list[Tensor]:
    return [p.detach().clone() for part in parts.values() for p in part.parameters()]


def loss_of(parts: dict[str, nn.Module]) -> Tensor:
    return torch.stack([part(torch.ones(3, 4)).sum() for part in parts.values()]).sum()


@pytest.mark.parametrize("implementation", ["for-loop", "foreach", "fused"])
def test_a_grad_scaler_unscales_and_steps(implementation: str) -> None:
    parts, plain_parts = two_parts(), two_parts()
    train_once(container_of(plain_parts), *plain_parts.values())
    container = container_of(parts, implementation=implementation)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(loss_of(parts)).backward()
    scaler.unscale_(container)
    assert parts["actor"][2].bias.grad.tolist() == [3.0, 3.0]
    scaler.step(container)
    scaler.update()
    assert all(map(torch.allclose, parameters_of(parts), parameters_of(plain_parts)))


@pytest.mark.parametrize("fields", [{}, {"implementation": "fused"}], ids=str)
def test_a_grad_scaler_skips_all_parts_when_one_is_not_finite(
    fields: dict[str, str],
) -> None:
    parts = two_parts()
    container = container_of(parts, **fields, **LINEAR)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(loss_of(parts)).backward()
    parts["critic"][0].weight.grad[0, 0] = torch.nan
    before = parameters_of(parts)
    scaler.step(container)
    scaler.update()
    assert all(map(torch.equal, before, parameters_of(parts)))
    assert scaler.get_scale() == 512.0
    assert container.param_groups[0]["lr"] == 0.1


def test_torchs_own_schedules_work_on_all_of_its_groups() -> None:
    parts = two_parts()
    container = container_of(parts)
    scheduler = LambdaLR(container, lambda step: 0.5**step)
    for _ in range(2):
        train_once(container, *parts.values())
        scheduler.step()
    assert [group["lr"] for group in container.param_groups] == exact(0.025, 0.0025)


@pytest.mark.parametrize(
    "made",
    [
        lambda container: OneCycleLR(container, max_lr=0.2, total_steps=10),
        lambda container: CyclicLR(container, base_lr=0.1, max_lr=0.2),
    ],
    ids=["one_cycle", "cyclic"],
)
def test_schedules_that_cycle_the_momentum_find_it(made: Callable[[Any], Any]) -> None:
    kwargs = {"lr": 0.1, "momentum": 0.9}
    container = OptimizersContainer(list(two_parts().values()), SGD, kwargs)
    scheduler = made(container)
    container.step()
    scheduler.step()
    assert {group["momentum"] for group in container.param_groups} != {0.9}


def test_no_part_steps_where_another_lacks_its_closure() -> None:
    parts = two_parts()
    nodes = {"actor": {}, "critic": {"optimizer": "LBFGS"}}
    container = build_optimizers(parts, nodes, provides="closure")
    loss_of(parts).backward()
    before = parameters_of(parts)
    with pytest.raises((TypeError, OptimHydraError), match="closure"):
        container.step()
    assert all(map(torch.equal, before, parameters_of(parts)))


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))],
    ids=["deepcopy", "pickle"],
)
@pytest.mark.parametrize("cls", [OptimizersContainer, Calling])
def test_copies_train_on_as_the_original_does(
    copied: Callable[[Any], Any], cls: type[Any]
) -> None:
    parts = two_parts()
    made = container_of(parts, clip_grad=0.5, **LINEAR)
    container = cls.of(
        dict(zip(made.names, made, strict=True)), lr_schedulers=made.lr_schedulers
    )
    train_once(container, *parts.values())
    other_parts, other = copied((parts, container))
    assert type(other) is cls
    assert other.names == container.names
    for _ in range(2):
        train_once(container, *parts.values())
        train_once(other, *other_parts.values())
    assert all(map(torch.equal, parameters_of(parts), parameters_of(other_parts)))
    rates = [
        [group["lr"] for group in each.param_groups] for each in (container, other)
    ]
    assert rates[0] == rates[1] == exact(0.07, 0.01)


def test_a_closure_is_called_once_and_its_loss_returned() -> None:
    parts = two_parts()
    container = container_of(parts)
    losses = []

    def closure() -> Tensor:
        container.zero_grad()
        losses.append(loss_of(parts))
        losses[-1].backward()
        return losses[-1]

    before = parameters_of(parts)
    with torch.no_grad():
        assert container.step(closure) is losses[0]
    assert container.step(closure=closure) is losses[1]
    assert len(losses) == 2
    assert losses[1] < losses[0]
    assert not any(map(torch.equal, before, parameters_of(parts)))


def test_gradients_of_all_parts_are_cleared() -> None:
    parts = two_parts()
    container = container_of(parts)
    train_once(container, *parts.values())
    container.zero_grad(set_to_none=False)
    assert all(not p.grad.any() for part in parts.values() for p in part.parameters())
    container.zero_grad()
    assert all(p.grad is None for part in parts.values() for p in part.parameters())
