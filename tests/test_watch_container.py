"""Nothing in a container steps when one of its modules has other parameters."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from group_models import WIDTH, Perceptron
from optim_hydra import OptimizersContainer, build_optimizers, grad_norm
from optim_hydra.watch import ReplacedParameterError

CONFIG = {"lr": 0.1, "lr_scheduler_type": "linear", "total_training_steps": 10}
SEVERAL = {**CONFIG, "param_groups": [{"role": "norm", "optimizer": "SGD"}]}
MESSAGE = (
    "the module{} no longer has the parameters down.weight, which its optimizer would"
    " go on updating: build the optimizer after sharding,"
    " load_state_dict(assign=True) and other changes of the module"
)


def modules() -> dict[str, Perceptron]:
    torch.manual_seed(0)
    return {"actor": Perceptron(), "critic": Perceptron()}


def backward(parts: dict[str, Perceptron]) -> None:
    for part in parts.values():
        part.zero_grad()
        part(torch.ones(2, WIDTH)).square().sum().backward()


def replace(part: Perceptron) -> None:
    part.down.weight = nn.Parameter(torch.zeros(WIDTH, 2 * WIDTH))


def snapshot(part: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in part.parameters()]


def refused(optimizer: torch.optim.Optimizer) -> str:
    with pytest.raises(ReplacedParameterError) as caught:
        optimizer.step()
    return str(caught.value)


@pytest.mark.parametrize("wrong", ["actor", "critic"])
@pytest.mark.parametrize("config", [CONFIG, SEVERAL], ids=["one", "several"])
def test_no_module_and_no_schedule_steps_when_either_is_wrong(
    config, wrong: str
) -> None:
    parts = modules()
    container = build_optimizers(parts, {"actor": config, "critic": config})
    backward(parts)
    container.step()
    replace(parts[wrong])
    backward(parts)
    before = [snapshot(part) for part in parts.values()]
    for _ in range(2):
        assert refused(container) == MESSAGE.format(f" '{wrong}'")
    for part, kept in zip(parts.values(), before, strict=True):
        assert all(map(torch.equal, snapshot(part), kept))
    assert {group["lr"] for group in container.param_groups} == {0.1 * 0.9}
    assert {s.last_epoch for s in container.lr_schedulers.values()} == {1}


def test_no_gradient_is_clipped_when_a_module_is_wrong() -> None:
    parts = modules()
    node = {**CONFIG, "clip_grad": 0.1}
    container = build_optimizers(parts, {"actor": node, "critic": node})
    replace(parts["critic"])
    backward(parts)
    norm = parts["actor"].up.weight.grad.norm()
    refused(container)
    assert parts["actor"].up.weight.grad.norm() == norm
    assert grad_norm(container["actor"]) is None


def test_the_right_module_may_step_by_itself() -> None:
    parts = modules()
    container = build_optimizers(parts, {"actor": CONFIG, "critic": CONFIG})
    replace(parts["critic"])
    backward(parts)
    refused(container)
    before = snapshot(parts["actor"])
    container["actor"].step()
    assert not any(map(torch.equal, snapshot(parts["actor"]), before))
    assert refused(container["critic"]) == MESSAGE.format("")


def test_a_module_that_goes_wrong_later_is_noticed_at_its_own_next_step() -> None:
    parts = modules()
    container = build_optimizers(parts, {"actor": CONFIG, "critic": CONFIG})
    replace(parts["critic"])
    backward(parts)
    refused(container)
    replace(parts["actor"])
    assert refused(container["actor"]) == MESSAGE.format("")


def test_the_parts_of_a_model_are_watched_together() -> None:
    parts = list(modules().values())
    container = OptimizersContainer(parts, torch.optim.SGD, {"lr": 0.1})
    backward({"first": parts[0], "second": parts[1]})
    replace(parts[1])
    before = snapshot(parts[0])
    assert refused(container) == MESSAGE.format(" '1'").replace("down", "1.down")
    assert all(map(torch.equal, snapshot(parts[0]), before))


def test_a_scaler_meets_the_same_error() -> None:
    parts = modules()
    container = build_optimizers(parts, {"actor": CONFIG, "critic": SEVERAL})
    replace(parts["critic"])
    backward(parts)
    before = snapshot(parts["actor"])
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    scaler.scale(torch.ones(()))
    with pytest.raises(ReplacedParameterError) as caught:
        scaler.step(container)
    assert str(caught.value) == MESSAGE.format(" 'critic'")
    assert all(map(torch.equal, snapshot(parts["actor"]), before))
