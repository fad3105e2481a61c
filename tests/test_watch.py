"""An optimizer notices that its module has other parameters than it was built for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from group_models import WIDTH, Perceptron
from optim_hydra import build_optimizer
from optim_hydra.watch import ReplacedParameterError

SGD = {"optimizer": "SGD", "lr": 0.1, "weight_decay": 0.0}
SEVERAL = {**SGD, "param_groups": [{"role": "norm", "optimizer": "AdamW"}]}
MESSAGE = (
    "the module no longer has the parameters {}, which its optimizer would go on"
    " updating: build the optimizer after sharding, load_state_dict(assign=True) and"
    " other changes of the module"
)
ALL = "up.weight, up.bias, norm.weight, norm.bias, down.weight and 1 more"


def perceptron() -> Perceptron:
    torch.manual_seed(0)
    return Perceptron()


def backward(model: nn.Module) -> None:
    model.zero_grad()
    model(torch.ones(2, WIDTH)).square().sum().backward()


def assign(model: Perceptron) -> None:
    model.down.weight = nn.Parameter(torch.zeros(WIDTH, 2 * WIDTH))


def assign_none(model: Perceptron) -> None:
    model.down.bias = None


def delete(model: Perceptron) -> None:
    del model.down.bias


def load_by_assignment(model: Perceptron) -> None:
    model.load_state_dict(perceptron().state_dict(), assign=True)


def convert_by_replacement(model: Perceptron) -> None:
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        model.to(torch.float64)
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def swap_a_submodule(model: Perceptron) -> None:
    model.down = nn.Linear(2 * WIDTH, WIDTH)


def swap_a_submodule_deep_down(model: Perceptron) -> None:
    model.norm = nn.Sequential(model.norm, nn.Identity())
    model.norm[0] = nn.LayerNorm(2 * WIDTH)


def delete_a_submodule(model: Perceptron) -> None:
    del model.down


def switch_a_submodule_off(model: Perceptron) -> None:
    model.down = nn.Identity()


def weight_norm_by_parametrization(model: Perceptron) -> None:
    parametrizations.weight_norm(model.up)


def weight_norm_by_hook(model: Perceptron) -> None:
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(model.up)


REPLACING = [
    (assign, "down.weight"),
    (assign_none, "down.bias"),
    (delete, "down.bias"),
    (load_by_assignment, ALL),
    (convert_by_replacement, ALL),
    (swap_a_submodule, "down.weight, down.bias"),
    (swap_a_submodule_deep_down, "norm.weight, norm.bias"),
    (delete_a_submodule, "down.weight, down.bias"),
    (switch_a_submodule_off, "down.weight, down.bias"),
    # Of these the module has new parameters, g and v, in place of the weight.
    (weight_norm_by_parametrization, "up.weight"),
    (weight_norm_by_hook, "up.weight"),
]


@pytest.mark.parametrize("config", [SGD, SEVERAL], ids=["one", "several"])
@pytest.mark.parametrize(
    ("replace", "names"), REPLACING, ids=[f.__name__ for f, _ in REPLACING]
)
def test_replaced_parameters_are_named_and_nothing_steps(
    replace: Callable[[Perceptron], None], names: str, config
) -> None:
    model = perceptron()
    optimizer = build_optimizer(model, config)
    backward(model)
    optimizer.step()
    backward(model)
    held = [p for group in optimizer.param_groups for p in group["params"]]
    replace(model)
    before = [p.detach().clone() for p in held]
    for _ in range(2):
        with pytest.raises(ReplacedParameterError) as caught:
            optimizer.step()
        assert str(caught.value) == MESSAGE.format(names)
    assert all(map(torch.equal, held, before))


def test_a_compiled_module_is_watched_through_its_wrapper() -> None:
    model = torch.compile(perceptron(), backend="eager")
    optimizer = build_optimizer(model, SGD)
    backward(model)
    optimizer.step()
    assign(model)
    with pytest.raises(ReplacedParameterError) as caught:
        optimizer.step()
    assert str(caught.value) == MESSAGE.format("down.weight")


def test_breaking_a_tie_leaves_a_parameter_that_nothing_trains() -> None:
    model = perceptron()
    model.other = nn.Linear(2 * WIDTH, WIDTH)
    model.other.weight = model.down.weight
    optimizer = build_optimizer(model, SGD)
    model.other.weight = nn.Parameter(model.down.weight.detach().clone())
    with pytest.raises(ReplacedParameterError) as caught:
        optimizer.step()
    assert str(caught.value) == MESSAGE.format("other.weight")
