"""Steps, schedules and clipping wait for no device beyond what the class does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW
from torch.utils._python_dispatch import TorchDispatchMode

from case_helpers import offer
from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    grad_norm,
)

WAITS = ("_local_scalar_dense", "is_nonzero", "item", "equal")
COSINE = {"lr": 0.1, "lr_scheduler_type": "cosine", "total_training_steps": 20}


class Waits(TorchDispatchMode):
    """Count the calls that need a number of a tensor on the host."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.overloadpacket.__name__.split(".")[-1] in WAITS
        return func(*args, **(kwargs or {}))


@contextmanager
def counted() -> Iterator[Waits]:
    with Waits() as waits:
        yield waits


def layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))


def with_gradients(model: nn.Module) -> nn.Module:
    model(torch.ones(2, 4)).square().sum().backward()
    return model


def waits_of(call: Callable[[], Any]) -> int:
    with counted() as waits:
        call()
    return waits.count


def test_waiting_is_counted() -> None:
    one = torch.ones(())
    assert waits_of(lambda: float(one)) == 1
    assert waits_of(lambda: bool(one > 0)) == 1
    assert waits_of(lambda: one + 1) == 0


@pytest.mark.parametrize("clip_grad", [None, 0.1, 1e6])
@pytest.mark.parametrize("implementation", ["for-loop", "foreach", "fused"])
@pytest.mark.parametrize("cls", [AdamW, SGD])
def test_a_step_waits_as_often_as_that_of_the_class(
    cls: Any, implementation: str, clip_grad: float | None
) -> None:
    flags = {"foreach": False, "fused": False, implementation: True}
    flags.pop("for-loop", None)
    plain_model, model = (with_gradients(layers()) for _ in range(2))
    plain = cls(plain_model.parameters(), lr=0.1, **flags)
    node = {**COSINE, "optimizer": cls.__name__, "clip_grad": clip_grad}
    optimizer = build_optimizer(model, {**node, "implementation": implementation})
    scheduler = build_lr_scheduler(optimizer, node)
    for _ in range(3):
        assert waits_of(optimizer.step) == waits_of(plain.step)
        assert waits_of(scheduler.step) == 0
    assert (grad_norm(optimizer) is None) == (clip_grad is None)


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_schedule_writes_tensors_without_waiting(is_shared: bool) -> None:
    model = with_gradients(layers())
    groups = [
        {"params": [parameter], "lr": torch.tensor(0.1 if is_shared else 0.1 + number)}
        for number, parameter in enumerate(model.parameters())
    ]
    optimizer = build_optimizer(groups, {**COSINE, "optimizer": "SGD"})
    scheduler = build_lr_scheduler(optimizer, COSINE)
    for _ in range(4):
        optimizer.step()
        assert waits_of(scheduler.step) == 0
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.0904508)


def test_clipping_of_scaled_gradients_waits_for_nothing() -> None:
    model = with_gradients(layers())
    node = {"optimizer": "SGD", "implementation": "fused", "clip_grad": 0.5}
    optimizer = build_optimizer(model, {**node, "lr": 1.0, "weight_decay": 0.0})
    plain_model = with_gradients(layers())
    plain = SGD(plain_model.parameters(), lr=1.0, fused=True)
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    for each in (optimizer, plain):
        each.grad_scale = torch.tensor(64.0)
        each.found_inf = torch.tensor(0.0)
    for parameter in [*model.parameters(), *plain_model.parameters()]:
        parameter.grad *= 64.0
    before = [p.detach().clone() for p in model.parameters()]
    assert waits_of(optimizer.step) == waits_of(plain.step)
    moved = [b - p.detach() for b, p in zip(before, model.parameters(), strict=True)]
    assert float(nn.utils.get_total_norm(moved)) == pytest.approx(0.5, rel=1e-5)
    assert grad_norm(optimizer) == pytest.approx(float(norm))


class Calling(SGD):
    def step(self, closure=None):
        return super().step(closure)


def test_clipping_twice_in_a_step_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, "calling", Calling=Calling)
    model = with_gradients(layers())
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    node = {"optimizer_impl": "calling", "optimizer": "Calling", "clip_grad": 0.5}
    optimizer = build_optimizer(model, node)
    plain = Calling(with_gradients(layers()).parameters(), lr=1e-3)
    assert waits_of(optimizer.step) == waits_of(plain.step)
    assert grad_norm(optimizer) == pytest.approx(float(norm))


def test_a_container_with_schedules_waits_as_often_as_its_classes() -> None:
    parts = {"actor": layers(), "critic": layers()}
    nodes = {
        "actor": {**COSINE, "clip_grad": 0.5},
        "critic": {**COSINE, "optimizer": "SGD"},
    }
    container = build_optimizers(parts, nodes)
    for part in parts.values():
        with_gradients(part)
    plain = [
        AdamW(with_gradients(layers()).parameters(), lr=0.1),
        SGD(with_gradients(layers()).parameters(), lr=0.1),
    ]
    for _ in range(3):
        expected = sum(waits_of(each.step) for each in plain)
        assert waits_of(container.step) == expected
