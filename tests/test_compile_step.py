"""`compile_step`: the class's own update compiled, once for a whole schedule."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.optim.lr_scheduler import LambdaLR

from optim_hydra import build_lr_scheduler, build_optimizer, grad_norm

COSINE = {
    "lr": 0.1,
    "compile_step": True,
    "lr_scheduler_type": "cosine",
    "lr_warmup_steps": 5,
    "total_training_steps": 40,
}
SGD = {"optimizer": "SGD", "weight_decay": 0.0}
MOMENTUM = {**SGD, "override_optimizer_config": {"momentum": 0.9}}
LION = {"optimizer_impl": "lion_pytorch", "optimizer": "Lion"}
DECAY = {"factor": 0.5, "layers": ["0.*", "2.*"]}
MUON = {"param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}


@pytest.fixture(autouse=True)
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Trace as torch.compile does, and run the graphs without generating code."""
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    default = functools.partial(torch.compile, backend="eager")
    monkeypatch.setattr(torch, "compile", default)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def backward(model: nn.Module, scale: float = 1.0) -> None:
    model.zero_grad()
    (scale * model(torch.ones(2, 4)).square().mean()).backward()


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def train(
    node: dict[str, Any], num_steps: int = 40, make: Callable[[], nn.Module] = layers
) -> tuple[Any, list[Tensor], list[int]]:
    """Return the optimizer, the weights, and the graphs compiled after each step."""
    model = make()
    optimizer = build_optimizer(model, node)
    scheduler = build_lr_scheduler(optimizer, node)
    counters.clear()
    graphs = []
    for _ in range(num_steps):
        backward(model)
        optimizer.step()
        scheduler.step()
        graphs.append(counters["stats"]["unique_graphs"])
    return optimizer, weights(model), graphs


@pytest.mark.parametrize(
    ("fields", "num_graphs"),
    [
        ({}, 1),
        ({"implementation": "for-loop"}, 1),
        ({"implementation": "fastest"}, 1),
        ({"no_decay": ["bias"], "layer_decay": DECAY}, 1),
        (SGD, 1),
        (MOMENTUM, 2),  # the first step has no momentum yet
        ({**MOMENTUM, "implementation": "foreach"}, 2),
        (LION, 2),
        (MUON, 2),  # one for each class
    ],
    ids=str,
)
def test_a_schedule_compiles_nothing_anew(
    fields: dict[str, Any], num_graphs: int
) -> None:
    node = {**COSINE, **fields}
    _, found, graphs = train(node)
    assert graphs[1:] == [num_graphs] * 39
    _, expected, none = train({**node, "compile_step": False})
    assert none[-1] == 0
    # torch's Muon makes its update in bfloat16.
    close = {"rtol": 1e-4, "atol": 5e-3 if fields is MUON else 1e-5}
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, **close)


def test_more_optimizers_than_torch_compiles_one_piece_of_code_for() -> None:
    built = []
    for _ in range(10):
        optimizer, _, graphs = train({**COSINE, **LION}, num_steps=3)
        built.append(optimizer)
        assert graphs[-1] == 2


def test_it_is_the_class_with_a_rate_that_is_a_tensor() -> None:
    model = layers()
    optimizer = build_optimizer(model, COSINE)
    (group,) = optimizer.param_groups
    assert type(optimizer) is torch.optim.AdamW
    assert group["lr"].dtype == torch.float64
    assert float(group["lr"]) == 0.1
    tensor = group["lr"]
    scheduler = build_lr_scheduler(optimizer, COSINE)
    backward(model)
    optimizer.step()
    scheduler.step()
    assert group["lr"] is tensor
    assert scheduler.get_last_lr() == [tensor]
    assert scheduler.get_last_lr()[0] is not tensor


def test_hooks_and_clipping_run_once_around_the_compiled_update() -> None:
    model = layers()
    optimizer = build_optimizer(model, {**COSINE, **SGD, "clip_grad": 0.5})
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    backward(model, scale=100.0)
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    before = weights(model)
    counters.clear()
    optimizer.step()
    assert counters["stats"]["unique_graphs"] == 1
    assert seen == ["before", "after"]
    moved = [a - b for a, b in zip(before, weights(model), strict=True)]
    assert float(nn.utils.get_total_norm(moved)) == pytest.approx(0.05, rel=1e-4)
    assert grad_norm(optimizer) == pytest.approx(float(norm))


def test_a_closure_is_called_once_and_its_loss_returned() -> None:
    model = layers()
    optimizer = build_optimizer(model, {**COSINE, "clip_grad": 0.5})
    losses = []

    def closure() -> Tensor:
        backward(model)
        losses.append(model(torch.ones(2, 4)).sum())
        return losses[-1]

    counters.clear()
    for given in range(4):
        before = weights(model)
        loss = optimizer.step(closure) if given % 2 else optimizer.step(closure=closure)
        assert loss is losses[-1]
        assert not any(map(torch.equal, before, weights(model)))
    assert len(losses) == 4
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("factor", [1.0, torch.inf])
def test_a_scaler_unscales_and_skips(factor: float) -> None:
    model, plain = layers(), layers()
    steps = []
    for each, is_compiled in ((model, True), (plain, False)):
        optimizer = build_optimizer(each, {**COSINE, "compile_step": is_compiled})
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        loss = each(torch.ones(2, 4)).square().mean()
        scaler.scale(loss * factor).backward()
        before = weights(each)
        scaler.step(optimizer)
        scaler.update()
        assert all(map(torch.equal, before, weights(each))) == (factor == torch.inf)
        steps.append(weights(each))
    for own, other in zip(*steps, strict=True):
        torch.testing.assert_close(own, other)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_compiled_and_train_on_as_the_original(copied) -> None:
    model = layers()
    optimizer = build_optimizer(model, {**COSINE, "clip_grad": 0.5})
    scheduler = build_lr_scheduler(optimizer, COSINE)
    for _ in range(2):
        backward(model)
        optimizer.step()
        scheduler.step()
    other_model, other, follower = copied((model, optimizer, scheduler))
    for module, each, schedule in (
        (model, optimizer, scheduler),
        (other_model, other, follower),
    ):
        counters.clear()
        for _ in range(5):
            backward(module)
            each.step()
            schedule.step()
        assert counters["stats"]["unique_graphs"] == (each is other)
        assert float(each.param_groups[0]["lr"]) == float(schedule.get_last_lr()[0])
    assert all(map(torch.equal, weights(model), weights(other_model)))


def test_torchs_own_schedules_drive_it() -> None:
    model = layers()
    optimizer = build_optimizer(model, {**COSINE, "no_decay": ["bias"]})
    scheduler = LambdaLR(optimizer, [lambda k: 0.5**k, lambda k: 0.1**k])
    counters.clear()
    for _ in range(4):
        backward(model)
        optimizer.step()
        scheduler.step()
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    assert rates == pytest.approx([0.1 * 0.5**4, 0.1 * 0.1**4])
    assert counters["stats"]["unique_graphs"] == 1
