"""What goes wrong where torch's own functions save and restore goes right here."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import (
    ConfigError,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.errors import OptimHydraWarning
from saved_training import (
    FORMS,
    bits,
    bits_of,
    kept_for,
    layers,
    refused_load,
    through_file,
    train,
    trained,
)

DECAYED = {"momentum": 0.9}


@pytest.mark.parametrize(
    ("cls", "extra"),
    [("Adam", {}), ("SGD", DECAYED), ("RMSprop", {}), ("Rprop", {}), ("LBFGS", {})],
)
@pytest.mark.parametrize("in_container", [False, True])
def test_saving_takes_no_step(cls: str, extra: Any, in_container: bool) -> None:
    module = layers()
    config = {"optimizer": cls, "lr": 0.1, "override_optimizer_config": extra}
    if cls not in {"LBFGS", "Rprop"}:
        config["weight_decay"] = 0.1
    if in_container:
        named = {"actor": module}
        optimizer: Any = build_optimizers(named, {"actor": config}, provides="closure")
    else:
        optimizer = build_optimizer(module, config, provides="closure")
    for each in [optimizer, *getattr(optimizer, "optimizers", [])]:
        each.register_step_pre_hook(lambda *_: pytest.fail("a step was taken"))
    before, parameters = bits_of(optimizer), bits(list(module.parameters()))
    for _ in range(2):
        optimizer.state_dict()
        optimizer_state_dict(optimizer)
    assert bits_of(optimizer) == before
    assert bits(list(module.parameters())) == parameters
    assert all(parameter.grad is None for parameter in module.parameters())


def test_loading_into_an_untrained_optimizer_takes_no_step() -> None:
    module = layers()
    saved = optimizer_state_dict(trained(module, {}))
    optimizer = build_optimizer(module, {})
    optimizer.register_step_pre_hook(lambda *_: pytest.fail("a step was taken"))
    parameters = bits(list(module.parameters()))
    load_optimizer_state_dict(optimizer, saved)
    assert bits(list(module.parameters())) == parameters
    assert {int(kept["step"]) for kept in optimizer.state.values()} == {2}


def test_gradients_that_are_pending_hide_no_state() -> None:
    module = layers()
    optimizer = trained(module, {})
    module(torch.ones(2, 4)).sum().backward()
    gradients = bits([parameter.grad for parameter in module.parameters()])
    saved = optimizer_state_dict(optimizer)
    assert sum(key.startswith("state.") for key in saved) == 6 * 3
    resumed = build_optimizer(module, {})
    load_optimizer_state_dict(resumed, saved)
    assert kept_for(resumed) == kept_for(optimizer)
    assert len(kept_for(resumed)) == 6
    assert bits([parameter.grad for parameter in module.parameters()]) == gradients


@pytest.mark.parametrize("form", ["ours", "torch"])
def test_state_is_matched_by_name_in_whatever_order(form: str) -> None:
    module = layers()
    forwards = list(module.named_parameters())
    optimizer = build_optimizer(forwards, {})
    train(module, optimizer, range(2))
    resumed = build_optimizer(forwards[::-1], {})
    load_optimizer_state_dict(resumed, FORMS[form](module, optimizer))
    assert kept_for(resumed) == kept_for(optimizer)
    train(module, resumed, [2])


def test_state_without_names_is_matched_by_order_and_shape_with_a_warning() -> None:
    module = layers()
    plain = torch.optim.AdamW(module.parameters())
    train(module, plain, range(2))
    saved = plain.state_dict()
    resumed = build_optimizer(module, {})
    with pytest.warns(OptimHydraWarning) as caught:
        load_optimizer_state_dict(resumed, saved)
    assert [str(warning.message) for warning in caught] == [
        "the saved state has no names: it was matched by order and shape"
    ]
    assert kept_for(resumed) == {
        name: bits(plain.state[p]) for name, p in module.named_parameters()
    }
    backwards = build_optimizer(list(module.named_parameters())[::-1], {})
    assert "exp_avg of 2.bias was saved with the shape (4, 4), where (2,) is due" in (
        refused_load(backwards, saved)
    )


def test_parameters_outside_of_the_module_are_saved_by_their_name() -> None:
    module = layers()
    optimizer = build_optimizer(module, {})
    outside = nn.Parameter(torch.ones(3))
    optimizer.add_param_group({"params": [("scale", outside)], "lr": 0.5})
    outside.grad = torch.ones(3)
    train(module, optimizer, range(1))
    outside.grad = torch.ones(3)
    optimizer.step()
    saved = copy.deepcopy(optimizer_state_dict(optimizer))
    assert bits(saved["state.scale.step"]) == bits(torch.tensor(1.0))
    resumed = build_optimizer(module, {})
    resumed.add_param_group({"params": [("scale", outside)], "lr": 0.25})
    load_optimizer_state_dict(resumed, saved)
    assert kept_for(resumed) == kept_for(optimizer)
    assert resumed.param_groups[-1]["lr"] == 0.25


def test_a_parameter_in_two_optimizers_never_gets_as_far_as_saving() -> None:
    shared = layers()
    config = {"actor": {}, "critic": {"optimizer": "SGD"}}
    with pytest.raises(ConfigError, match="belongs to actor too, and both optimizers"):
        build_optimizers({"actor": shared, "critic": shared}, config)


@pytest.mark.parametrize("form", ["ours", "torch"])
@pytest.mark.parametrize(
    ("parameters", "kept"),
    [(torch.float32, torch.bfloat16), (torch.bfloat16, torch.float32)],
)
def test_state_keeps_the_dtype_that_it_was_saved_in(
    parameters: torch.dtype, kept: torch.dtype, form: str, tmp_path: Path
) -> None:
    module = layers().to(parameters)
    names = dict(module.named_parameters())
    optimizer = build_optimizer(module, {"optimizer": "RMSprop"})
    for parameter in names.values():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    for state in optimizer.state.values():
        state["square_avg"] = state["square_avg"].to(kept)
    saved = through_file(FORMS[form](module, optimizer), tmp_path)
    resumed = build_optimizer(module, {"optimizer": "RMSprop"})
    load_optimizer_state_dict(resumed, saved)
    assert kept_for(resumed) == kept_for(optimizer)
    assert resumed.state[names["2.weight"]]["square_avg"].dtype is kept


def test_loaded_tensors_are_copies() -> None:
    module = layers()
    optimizer = trained(module, {})
    saved = optimizer_state_dict(optimizer)
    before = bits(saved)
    twin = copy.deepcopy(module)
    resumed = build_optimizer(twin, {})
    load_optimizer_state_dict(resumed, saved)
    train(twin, resumed, range(2, 4))
    assert bits(saved) == before
    assert bits(optimizer_state_dict(optimizer)) == before
