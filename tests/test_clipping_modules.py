"""Each module of `build_optimizers` is clipped by its own limit and norm."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from group_models import WIDTH, Perceptron
from optim_hydra import OptimizersContainer, build_optimizers, grad_norm

SGD = {"optimizer": "SGD", "lr": 1.0, "weight_decay": 0.0}
COPIES = [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))]
LINEAR = {"lr_scheduler_type": "linear", "total_training_steps": 10}


def modules() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"actor": Perceptron(), "critic": Perceptron(), "world": Perceptron()}


def configs(**common: Any) -> dict[str, dict[str, Any]]:
    own = {"actor": 0.25, "critic": 0.5, "world": None}
    return {name: {**SGD, "clip_grad": own[name], **common} for name in own}


def loss_of(parts: dict[str, nn.Module]) -> Tensor:
    inputs = torch.arange(2.0 * WIDTH).reshape(2, WIDTH)
    outputs = [part(inputs).square().sum() for part in parts.values()]
    return outputs[0] + 2 * outputs[1] + 3 * outputs[2]


def norms(parts: dict[str, nn.Module]) -> dict[str, float]:
    return {
        name: float(nn.utils.get_total_norm([p.grad for p in part.parameters()]))
        for name, part in parts.items()
    }


def snapshot(parts: dict[str, nn.Module]) -> dict[str, list[Tensor]]:
    return {
        name: [p.detach().clone() for p in part.parameters()]
        for name, part in parts.items()
    }


def step_lengths(
    before: dict[str, list[Tensor]], parts: dict[str, nn.Module]
) -> dict[str, float]:
    """Return what each module's gradients were clipped to, since lr is 1."""
    lengths = {}
    for name, part in parts.items():
        moves = zip(part.parameters(), before[name], strict=True)
        moved = torch.cat([(p.detach() - b).flatten() for p, b in moves])
        lengths[name] = float(moved.norm())
    return lengths


def assert_each_clipped(
    container: OptimizersContainer,
    lengths: dict[str, float],
    expected: dict[str, float],
) -> None:
    assert min(expected.values()) > 0.5
    assert lengths["actor"] == pytest.approx(0.25, rel=1e-4)
    assert lengths["critic"] == pytest.approx(0.5, rel=1e-4)
    assert lengths["world"] == pytest.approx(expected["world"], rel=1e-4)
    assert grad_norm(container["actor"]) == pytest.approx(expected["actor"], rel=1e-4)
    assert grad_norm(container["critic"]) == pytest.approx(expected["critic"], rel=1e-4)
    assert grad_norm(container["world"]) is None
    assert grad_norm(container) is None


def test_each_module_is_clipped_by_its_own_norm_to_its_own_limit() -> None:
    parts = modules()
    container = build_optimizers(parts, configs())
    loss_of(parts).backward()
    before, expected = snapshot(parts), norms(parts)
    container.step()
    assert_each_clipped(container, step_lengths(before, parts), expected)


def test_a_module_that_steps_by_itself_is_clipped_too() -> None:
    parts = modules()
    container = build_optimizers(parts, configs())
    loss_of(parts).backward()
    before, expected = snapshot(parts), norms(parts)
    container["critic"].step()
    lengths = step_lengths(before, parts)
    assert lengths == pytest.approx({"actor": 0, "critic": 0.5, "world": 0}, rel=1e-4)
    assert grad_norm(container["critic"]) == pytest.approx(expected["critic"], rel=1e-4)
    assert grad_norm(container["actor"]) is None


def test_a_closure_makes_gradients_that_each_module_clips() -> None:
    parts = modules()
    container = build_optimizers(parts, configs())
    expected = {}

    def closure() -> Tensor:
        container.zero_grad()
        loss = loss_of(parts)
        loss.backward()
        expected.update(norms(parts))
        return loss

    before = snapshot(parts)
    container.step(closure)
    assert_each_clipped(container, step_lengths(before, parts), expected)


def test_a_class_that_works_with_closures_clips_its_own_module_alone() -> None:
    parts = modules()
    nodes = configs()
    nodes["actor"] |= {"optimizer": "LBFGS", "lr": 0.01}
    del nodes["actor"]["weight_decay"]
    container = build_optimizers(parts, nodes, provides=["closure"])
    seen: list[dict[str, float]] = []

    def closure() -> Tensor:
        if parts["actor"].up.weight.grad is not None:
            seen.append(norms(parts))
        container.zero_grad()
        loss = loss_of(parts)
        loss.backward()
        return loss

    before = snapshot(parts)
    container.step(closure)
    # The first call is the container's; LBFGS then clips at each of its own.
    assert len(seen) > 3
    assert max(found["actor"] for found in seen[1:]) <= 0.25 * 1.001
    assert min(found["critic"] for found in seen) > 0.5
    lengths = step_lengths(before, parts)
    assert lengths["critic"] == pytest.approx(0.5, rel=1e-4)
    assert grad_norm(container["actor"]) > 0.25


def test_the_classes_of_one_module_share_the_norm_of_that_module() -> None:
    parts = modules()
    nodes = configs()
    rule = {"role": "head", "optimizer": "RMSprop"}
    nodes["critic"] |= {"param_groups": [rule], "lr": 1e-9}
    container = build_optimizers(parts, nodes)
    assert container["critic"].names == ["SGD", "RMSprop"]
    loss_of(parts).backward()
    expected = norms(parts)
    container.step()
    assert grad_norm(container["critic"]) == pytest.approx(expected["critic"], rel=1e-4)
    clipped = norms(parts)
    assert clipped == pytest.approx(
        {"actor": 0.25, "critic": 0.5, "world": expected["world"]}, rel=1e-4
    )


def test_a_closure_reaches_a_class_that_needs_it_among_others_of_one_module() -> None:
    parts = modules()
    nodes = configs(lr=1e-3)
    rule = {"role": "head", "optimizer": "LBFGS", "lr": 0.01}
    # LBFGS measures curvature by gradients, which clipping would bend.
    nodes["critic"] |= {"param_groups": [rule], "clip_grad": None}
    container = build_optimizers(parts, nodes, provides=["closure"])

    def closure() -> Tensor:
        container.zero_grad()
        loss = loss_of(parts)
        loss.backward()
        return loss

    first = container.step(closure).item()
    assert container.step(closure).item() < first


@pytest.mark.parametrize("fused", [False, True])
def test_a_scaler_leaves_the_norm_of_each_module_unscaled(fused: bool) -> None:
    parts = modules()
    implementation = "fused" if fused else "for-loop"
    container = build_optimizers(parts, configs(implementation=implementation))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(loss_of(parts)).backward()
    before = snapshot(parts)
    expected = {name: norm / 1024.0 for name, norm in norms(parts).items()}
    scaler.step(container)
    assert_each_clipped(container, step_lengths(before, parts), expected)


def test_a_step_that_the_scaler_skips_leaves_the_schedules_where_they_are() -> None:
    parts = modules()
    container = build_optimizers(parts, configs(**LINEAR))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    rates = []
    for factor in (1.0, float("inf"), 1.0):
        container.zero_grad()
        scaler.scale(loss_of(parts) * factor).backward()
        before = snapshot(parts)
        scaler.step(container)
        scaler.update()
        lengths = step_lengths(before, parts)
        assert all(length == 0 for length in lengths.values()) == (factor != 1.0)
        rates.append({group["lr"] for group in container.param_groups})
    assert scaler.get_scale() == 512.0
    assert [rate for (rate,) in rates] == pytest.approx([0.9, 0.9, 0.8])
    assert {s.last_epoch for s in container.lr_schedulers.values()} == {2}


@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
def test_copies_clip_each_module_and_go_on_with_its_schedule(copied) -> None:
    parts = modules()
    container = build_optimizers(parts, configs(**LINEAR))
    loss_of(parts).backward()
    container.step()
    twins, twin = copied(copied((parts, container)))
    assert twin["actor"].param_groups[0]["params"][0] is twins["actor"].up.weight
    for schedule, inner in zip(twin.lr_schedulers.values(), twin, strict=True):
        assert schedule.optimizer is inner
    twin.zero_grad()
    loss_of(twins).backward()
    before, expected = snapshot(twins), norms(twins)
    twin.step()
    lengths = {name: n / 0.9 for name, n in step_lengths(before, twins).items()}
    assert_each_clipped(twin, lengths, expected)
    assert [group["lr"] for group in twin.param_groups] == pytest.approx([0.8] * 3)
    assert [group["lr"] for group in container.param_groups] == pytest.approx([0.9] * 3)
