"""What leaves a module the parameters of its optimizer raises no alarm."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune

from group_models import WIDTH, Perceptron
from optim_hydra import build_optimizer

SGD = {"optimizer": "SGD", "lr": 0.1, "weight_decay": 0.0}
SEVERAL = {**SGD, "param_groups": [{"role": "norm", "optimizer": "AdamW"}]}


def perceptron() -> Perceptron:
    torch.manual_seed(0)
    return Perceptron()


def backward(model: nn.Module) -> None:
    model.zero_grad()
    model(torch.ones(2, WIDTH)).square().sum().backward()


def snapshot(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def parametrized(model: Perceptron) -> None:
    parametrize.register_parametrization(model.up, "weight", Doubled())


def spectral_norm(model: Perceptron) -> None:
    parametrizations.spectral_norm(model.up)


def spectral_norm_by_hook(model: Perceptron) -> None:
    nn.utils.spectral_norm(model.up)


def pruned(model: Perceptron) -> None:
    prune.l1_unstructured(model.up, "weight", amount=0.5)


def pruned_for_good(model: Perceptron) -> None:
    prune.l1_unstructured(model.up, "weight", amount=0.5)
    prune.remove(model.up, "weight")


def converted_in_place(model: Perceptron) -> None:
    model.to(torch.float64).to(torch.float32)


def converted_by_swapping(model: Perceptron) -> None:
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.zero_grad()
        model.to(torch.float64)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    model.to(torch.float32)


def loaded(model: Perceptron) -> None:
    model.load_state_dict(perceptron().state_dict())


def frozen(model: Perceptron) -> None:
    model.up.requires_grad_(False)


def in_eval_mode(model: Perceptron) -> None:
    model.eval()


def compiled_in_place(model: Perceptron) -> None:
    model.compile(backend="eager")


def compiled_inside(model: Perceptron) -> None:
    model.up = torch.compile(model.up, backend="eager")


def wrapped_inside(model: Perceptron) -> None:
    model.down = nn.Sequential(model.down, nn.Identity())


def extended(model: Perceptron) -> None:
    model.register_parameter("scale", nn.Parameter(torch.ones(1)))


KEEPING = [
    parametrized,
    spectral_norm,
    spectral_norm_by_hook,
    pruned,
    pruned_for_good,
    converted_in_place,
    converted_by_swapping,
    loaded,
    frozen,
    in_eval_mode,
    compiled_in_place,
    compiled_inside,
    wrapped_inside,
    extended,
]


@pytest.mark.parametrize("change", KEEPING)
@pytest.mark.parametrize("config", [SGD, SEVERAL], ids=["one", "several"])
def test_what_keeps_the_parameters_raises_no_alarm(
    change: Callable[[Perceptron], None], config
) -> None:
    model = perceptron()
    optimizer = build_optimizer(model, config)
    backward(model)
    optimizer.step()
    change(model)
    for _ in range(3):
        backward(model)
        before = model.down(torch.ones(1, 2 * WIDTH)).detach()
        optimizer.step()
        assert not torch.equal(model.down(torch.ones(1, 2 * WIDTH)), before)


def test_a_module_may_move_into_another_one_or_be_compiled() -> None:
    model = perceptron()
    optimizer = build_optimizer(model, SEVERAL)
    whole = nn.ModuleDict({"old": nn.Linear(2, 2)})
    whole["policy"] = model
    compiled = torch.compile(model, backend="eager")
    for network in (whole["policy"], compiled, nn.Sequential(compiled)):
        before = snapshot(model)
        backward(network)
        optimizer.step()
        assert not any(map(torch.equal, snapshot(model), before))


def test_copies_of_an_optimizer_are_not_watched() -> None:
    model = perceptron()
    optimizer = build_optimizer(model, SEVERAL)
    twin, copied = copy.deepcopy((model, optimizer))
    model.down.weight = nn.Parameter(torch.zeros(WIDTH, 2 * WIDTH))
    before = snapshot(twin)
    backward(twin)
    copied.step()
    assert not any(map(torch.equal, snapshot(twin), before))


def test_modules_that_were_given_in_a_list_for_a_moment_may_be_pruned() -> None:
    models = [perceptron(), perceptron()]
    optimizer = build_optimizer(nn.ModuleList(models), SGD)
    pruned(models[1])
    backward(models[1])
    optimizer.step()
