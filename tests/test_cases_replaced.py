"""Parameters that were replaced after the build, as public bug reports met them.

Cases: B49.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import prune
from torch.optim import Optimizer

from case_helpers import Compose, train_once
from optim_hydra import OptimizersContainer, build_optimizer, build_optimizers
from optim_hydra.watch import ReplacedParameterError
from wrapped_models import WRAPPERS, compiled, parametrized, three_layers

Change = Callable[[nn.Module], Any]


def new_weight(module: nn.Module) -> None:
    module.weight = nn.Parameter(module.weight.detach().clone())


def assign(module: nn.Module) -> None:
    state = {name: value.clone() for name, value in module.state_dict().items()}
    module.load_state_dict(state, assign=True)


def convert_anew(module: nn.Module) -> None:
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        module.double().float()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)


def told(optimizer: Optimizer, *modules: nn.Module) -> str:
    """Return what the next step must end in."""
    with pytest.raises(ReplacedParameterError) as caught:
        train_once(optimizer, *modules)
    return str(caught.value)


# Each builds for one module with two parameters or more.
BUILDS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "optimizer": lambda module: build_optimizer(module, {}),
    "two_classes": lambda module: build_optimizer(
        module, {"param_groups": [{"ndim": 2, "optimizer": "Muon"}]}
    ),
    "named_part": lambda module: build_optimizers({"actor": module}, {"actor": {}}),
    "model_part": lambda module: OptimizersContainer([module], torch.optim.SGD),
}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
@pytest.mark.parametrize("change", [new_weight, assign, convert_anew])
def test_B49_replaced_parameters_are_noticed_at_the_next_step(
    build: Callable[[nn.Module], Optimizer], change: Change
) -> None:
    module = nn.Linear(4, 2)
    optimizer = build(module)
    train_once(optimizer, module)
    change(module)
    names = "weight" if change is new_weight else "weight, bias"
    expected = f"the parameters {names}, which its optimizer would go on updating"
    assert expected in told(optimizer, module)


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_B49_an_untouched_module_is_left_alone(build: Any, compose: Compose) -> None:
    module = nn.Linear(4, 2)
    optimizer = build(module)
    for _ in range(3):
        train_once(optimizer, module)


def test_B49_the_first_few_are_named(compose: Compose) -> None:
    module = three_layers()
    optimizer = build_optimizer(module, compose().actor.optim)
    assign(module)
    assert told(optimizer, module) == (
        "the module no longer has the parameters 0.weight, 0.bias, 1.weight, 1.bias,"
        " 2.weight and 1 more, which its optimizer would go on updating: build the"
        " optimizer after sharding, load_state_dict(assign=True) and other changes of"
        " the module"
    )


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_B49_kin_wrapped_models(wrap: Any, one_process: None) -> None:
    module = three_layers()
    last = module[2]
    wrapped = wrap(module)
    optimizer = build_optimizer(wrapped, {})
    train_once(optimizer, wrapped)
    new_weight(last)
    assert "the parameters 2.weight, which" in told(optimizer, wrapped)


def test_B49_kin_sharding_comes_before_the_build(one_process: None) -> None:
    mesh = init_device_mesh("cpu", (1,))
    module = three_layers()
    early = build_optimizer(module, {})
    fully_shard(module, mesh=mesh)
    assert "build the optimizer after sharding" in told(early, module)
    late = build_optimizer(module, {"clip_grad": 1.0})
    train_once(late, module)
    train_once(late, module)


def test_B49_kin_no_part_steps_when_one_is_refused() -> None:
    parts = {"actor": three_layers(), "critic": three_layers()}
    config = {name: {"optimizer": "SGD", "clip_grad": 1e-3} for name in parts}
    container = build_optimizers(parts, config)
    new_weight(parts["critic"][0])
    before = [parameter.detach().clone() for parameter in parts["actor"].parameters()]
    told(container, *parts.values())
    assert all(map(torch.equal, before, parts["actor"].parameters()))


def test_B49_kin_the_part_is_named() -> None:
    parts = {"actor": three_layers(), "critic": three_layers()}
    container = build_optimizers(parts, {"actor": {}, "critic": {}})
    new_weight(parts["critic"][0])
    assert "critic" in told(container, *parts.values())


def new_head(module: nn.Sequential) -> None:
    module[2] = nn.Linear(4, 3)


def no_norm(module: nn.Sequential) -> None:
    del module[1]


def no_bias(module: nn.Sequential) -> None:
    module[2].bias = None


def weight_norm(module: nn.Sequential) -> None:
    nn.utils.parametrizations.weight_norm(module[2])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (new_head, "2.weight"),
        (no_norm, "1.weight"),
        (no_bias, "2.bias"),
        (weight_norm, "2.weight"),
    ],
)
def test_B49_kin_parameters_that_left_with_their_module_are_noticed(
    change: Change, name: str
) -> None:
    module = three_layers()
    optimizer = build_optimizer(module, {})
    train_once(optimizer, module)
    change(module)
    assert name in told(optimizer, module)


@pytest.mark.parametrize("index", [0, 2])
def test_B49_kin_one_end_of_a_tie_is_replaced(index: int) -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    module[2].weight = module[0].weight
    optimizer = build_optimizer(module, {})
    train_once(optimizer, module)
    new_weight(module[index])
    assert f"{index}.weight" in told(optimizer, module)


HARMLESS: dict[str, Change] = {
    "spectral_norm": lambda module: nn.utils.parametrizations.spectral_norm(module[0]),
    "parametrized": lambda module: parametrized(module[0], "bias"),
    "pruned": lambda module: prune.l1_unstructured(module[0], "weight", 0.5),
    "converted": lambda module: module.double().float(),
    "checkpointed": WRAPPERS["checkpointed_child"],
    "loaded": lambda module: module.load_state_dict(three_layers().state_dict()),
    "frozen": lambda module: module[0].requires_grad_(False),
    "extended": lambda module: module.append(nn.Linear(2, 2)),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_B49_kin_changes_that_keep_the_parameters_are_harmless(change: Change) -> None:
    module = three_layers()
    optimizer = build_optimizer(module, {})
    change(module)
    train_once(optimizer, module)


def test_B49_kin_wrapping_after_the_build_is_harmless(one_process: None) -> None:
    module = three_layers()
    optimizer = build_optimizer(module, {})
    train_once(optimizer, compiled(nn.parallel.DistributedDataParallel(module)))


def test_B49_kin_a_copy_has_parameters_of_its_own() -> None:
    module = three_layers()
    copied_module, copied = copy.deepcopy((module, BUILDS["two_classes"](module)))
    new_weight(module[0])
    train_once(copied, copied_module)
