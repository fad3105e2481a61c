"""What can't be updated in backward is refused, before anything is built if it can."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from backward_training import MUON, backward, layers, same_weights, trained
from case_helpers import refused
from optim_hydra import ConfigError, build_optimizer, validate
from optim_hydra.errors import OptimHydraWarning
from optim_hydra.step_in_backward import StepInBackwardError

NODE = {"step_in_backward": True, "_full_key_": "actor.optim"}
PACKAGE = {"optimizer_impl": "pytorch_optimizer"}
AT = "set step_in_backward=false @ actor.optim.step_in_backward"
OTHER = "takes other steps where each parameter is updated by itself:"
MORE = "needs more than one gradient at a time:"
AMP = (
    "backward has used gradients up that a GradScaler had scaled: train without one"
    f" (bfloat16 needs none), and from the start, or {AT}"
)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"optimizer": "LBFGS", "provides": "closure"}, f"LBFGS {MORE}"),
        (
            {**PACKAGE, "optimizer": "AdaHessian", "provides": "create_graph"},
            f"AdaHessian {MORE}",
        ),
        (
            {"optimizer_impl": "prodigyopt", "optimizer": "Prodigy"},
            f"Prodigy {OTHER}",
        ),
        (
            {
                **PACKAGE,
                "optimizer": "Lamb",
                "override_optimizer_config": {"pre_norm": True},
            },
            f"Lamb {OTHER}",
        ),
        (
            {
                **PACKAGE,
                "optimizer": "Lookahead",
                "override_optimizer_config": {"optimizer": {"optimizer": "AdamW"}},
            },
            "Lookahead takes the steps of another optimizer:",
        ),
    ],
    ids=str,
)
def test_classes_that_need_all_gradients(
    module: nn.Module, fields: dict[str, Any], what: str
) -> None:
    provides = fields.pop("provides", ())
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {**NODE, **fields}, provides=provides)
    assert str(caught.value) == f"{what} {AT}"
    hooks = [p._post_accumulate_grad_hooks for p in module.parameters()]
    assert not any(hooks)


def test_fields_that_it_excludes_are_told_without_building(module: nn.Module) -> None:
    node = {"step_in_backward": True, "clip_grad": 1.0, "compile_step": True}
    said = (
        "2 problems:\n"
        "  - clip_grad takes the norm of all gradients, and step_in_backward frees each"
        " as soon as it is there: set clip_grad=null, or step_in_backward=false"
        " @ actor.optim.clip_grad\n"
        "  - compile_step compiles one update of all parameters, and step_in_backward"
        " makes one for each: keep one of them @ actor.optim.compile_step"
    )
    assert str(refused(module, {**node, "_full_key_": "actor.optim"})) == said
    with pytest.raises(ConfigError) as caught:
        validate({"actor": {"optim": node}})
    assert str(caught.value) == said


def test_a_second_backward_changes_nothing() -> None:
    model, optimizer, _ = trained({**NODE}, 2)
    backward(model)
    before = copy.deepcopy((model, optimizer.state_dict()))
    with pytest.raises(StepInBackwardError) as caught:
        backward(model)
    assert str(caught.value) == (
        "2.bias gets a second gradient before optimizer.step(), and was updated with"
        " the first: call it after each backward(), and to accumulate gradients set"
        " step_in_backward=false @ actor.optim.step_in_backward"
    )
    assert same_weights(model, before[0])
    assert all(parameter.grad is None for parameter in model.parameters())
    optimizer.step()
    backward(model)
    assert not same_weights(model, before[0])


def test_losses_of_different_parameters_may_come_one_after_the_other() -> None:
    parts = nn.ModuleList([layers(), layers()])
    optimizer = build_optimizer(parts, NODE)
    for _ in range(2):
        for part in parts:
            backward(part)
        optimizer.step()


def test_a_parameter_whose_gradient_comes_in_pieces_is_told_by_name() -> None:
    """Reentrant checkpoints run a backward of their own for each use of a layer."""
    layer = nn.Linear(4, 4)
    optimizer = build_optimizer(layer, NODE)
    inputs = torch.ones(2, 4, requires_grad=True)
    for _ in range(2):
        inputs = checkpoint(layer, inputs, use_reentrant=True)
    with pytest.raises(StepInBackwardError, match="bias gets a second gradient"):
        inputs.sum().backward()
    assert len(optimizer.state) == 2


@pytest.mark.parametrize("fields", [{}, {"implementation": "fused"}, MUON], ids=str)
@pytest.mark.parametrize("unscales", [True, False])
def test_a_scaler_is_told(fields: dict[str, Any], unscales: bool) -> None:
    model = layers()
    optimizer = build_optimizer(model, {**NODE, **fields})
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(model(torch.ones(3, 4)).sum()).backward()
    if unscales:
        scaler.unscale_(optimizer)
    with pytest.raises(StepInBackwardError) as caught:
        scaler.step(optimizer)
    assert str(caught.value) == AMP


def test_gradients_that_do_not_come_by_backward_are_told_once() -> None:
    model = layers()
    optimizer = build_optimizer(model, NODE)
    before = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    with pytest.warns(OptimHydraWarning) as caught:
        optimizer.step()
    assert str(caught[0].message) == (
        "backward has updated no parameter, and gradients are left to the step: set"
        " step_in_backward=false where they come another way"
        " @ actor.optim.step_in_backward"
    )
    assert caught[0].filename == __file__
    assert not same_weights(model, before)
    optimizer.step()


def test_a_scaler_that_is_switched_off_is_as_none() -> None:
    model = layers()
    optimizer = build_optimizer(model, NODE)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for _ in range(2):
        scaler.scale(model(torch.ones(3, 4)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()


def test_it_is_true_or_false_and_of_the_whole_node(module: nn.Module) -> None:
    assert str(refused(module, {"step_in_backward": "yes"})) == (
        "'yes' is not a bool: write true or false @ step_in_backward"
    )
    rule = {"pattern": "*", "step_in_backward": True}
    assert str(refused(module, {"param_groups": [rule]})) == (
        "no field step_in_backward in a rule: it holds for the whole node"
        " @ param_groups[0].step_in_backward"
    )
