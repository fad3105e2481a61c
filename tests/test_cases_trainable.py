"""Frozen parameters and nothing to train, as public bug reports met them.

Cases: B38, B39.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from case_helpers import Compose, names_by, refused, train_once, values_of
from group_models import lora
from optim_hydra import (
    ConfigError,
    OptimHydraError,
    OptimizersContainer,
    build_optimizer,
    build_optimizers,
)
from optim_hydra.errors import OptimHydraWarning
from wrapped_models import WRAPPERS, three_layers

DECAYED = "actor:\n  optim:\n    weight_decay: 0.1\n"
KEPT = ["1.weight", "1.bias", "2.weight", "2.bias"]


def half_frozen() -> nn.Sequential:
    model = three_layers()
    model[0].requires_grad_(False)
    return model


def actor_and_frozen_critic() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    parts = {"actor": nn.Linear(4, 2), "critic": nn.Linear(4, 2)}
    parts["critic"].requires_grad_(False)
    return parts


def test_B38_frozen_parameters_are_left_out(compose: Compose) -> None:
    model = half_frozen()
    optimizer = build_optimizer(model, compose(yaml=DECAYED).actor.optim)
    assert names_by(optimizer, "weight_decay") == {0.1: KEPT}
    (group,) = optimizer.param_groups
    assert sum(p.numel() for p in group["params"]) == 18
    before = model[0].weight.clone()
    train_once(optimizer, model)
    assert torch.equal(model[0].weight, before)
    assert len(optimizer.state) == 4


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_B38_kin_wrapped_models(wrap: Any, one_process: None) -> None:
    optimizer = build_optimizer(wrap(half_frozen()), {"no_decay": ["norm"]})
    assert names_by(optimizer, "weight_decay") == {0.01: KEPT[2:], 0.0: KEPT[:2]}


@pytest.mark.parametrize(
    "read",
    [
        lambda model: model.named_parameters(),
        lambda model: [
            {"params": model[0]},
            {"params": list(model.named_parameters())},
        ],
        lambda model: {"first": model[0], "last": nn.Sequential(*model[1:])},
        list,
    ],
    ids=["pairs", "groups", "modules", "parts"],
)
def test_B38_kin_other_sources(read: Callable[[nn.Module], Any]) -> None:
    optimizer = build_optimizer(read(half_frozen()), {})
    assert len(values_of(optimizer, "lr")) == 4


def test_B38_kin_a_rule_freezes() -> None:
    model = three_layers()
    rules = [{"pattern": "0.*", "freeze": True, "expect": 2}]
    optimizer = build_optimizer(model, {"weight_decay": 0.1, "param_groups": rules})
    assert names_by(optimizer, "weight_decay") == {0.1: KEPT}
    before = model[0].weight.clone()
    train_once(optimizer, model)
    assert torch.equal(model[0].weight, before)
    assert model[0].weight.grad is None


def test_B38_kin_a_rule_freezes_what_was_registered_again() -> None:
    model = half_frozen()
    model[0].weight = nn.Parameter(model[0].weight.detach())  # trainable once more
    rules = [{"pattern": "0.*", "freeze": True}]
    optimizer = build_optimizer(model, {"param_groups": rules})
    assert names_by(optimizer, "lr") == {1e-3: KEPT}
    assert not model[0].weight.requires_grad


def test_B38_kin_a_group_left_without_parameters_is_dropped() -> None:
    rules = [{"pattern": "0.*", "lr": 0.5}, {"pattern": "0.*", "optimizer": "Muon"}]
    for rule in rules:
        with pytest.warns(OptimHydraWarning, match="matches frozen parameters only"):
            optimizer = build_optimizer(half_frozen(), {"param_groups": [rule]})
        assert type(optimizer) is torch.optim.AdamW
        assert names_by(optimizer, "lr") == {1e-3: KEPT}


def test_B38_kin_a_class_for_matrices_is_not_asked_about_frozen_ones() -> None:
    model = three_layers()
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.ndim == 2)
    optimizer = build_optimizer(model, {"optimizer": "Muon"})
    assert list(values_of(optimizer, "lr")) == ["0.weight", "2.weight"]


def test_B38_kin_lora_trains_its_factors_alone() -> None:
    found = values_of(build_optimizer(lora(), {"no_decay": ["bias"]}), "weight_decay")
    assert set(found.values()) == {0.01}
    assert all(".lora_" in name for name in found)
    assert len(found) == 4


def test_B39_a_part_with_nothing_to_train_is_named(compose: Compose) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizers(actor_and_frozen_critic(), compose())
    assert str(caught.value) == (
        "nothing to train in the module Linear: 2 parameters, all 2 frozen: set"
        " requires_grad before building @ critic.optim"
    )


def test_B39_a_part_that_is_not_to_be_trained_is_left_out(compose: Compose) -> None:
    parts = actor_and_frozen_critic()
    container = build_optimizers({"actor": parts["actor"]}, compose())
    assert container.names == ["actor"]


def test_B39_kin_one_module(compose: Compose) -> None:
    critic = actor_and_frozen_critic()["critic"]
    assert str(refused(critic, compose().critic.optim)) == (
        "nothing to train in the module Linear: 2 parameters, all 2 frozen: set"
        " requires_grad before building @ critic.optim"
    )


@pytest.mark.parametrize("wrap", ["distributed", "compiled"])
def test_B39_kin_wrapped_modules(
    wrap: str, one_process: None, compose: Compose
) -> None:
    model = half_frozen()
    wrapped = WRAPPERS[wrap](model)
    model.requires_grad_(False)
    told = str(refused(wrapped, compose().actor.optim))
    assert "6 parameters, all 6 frozen" in told
    assert told.endswith("@ actor.optim")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (nn.ReLU(), "nothing to train in the module ReLU: 0 parameters"),
        (iter([]), "nothing to train in the parameters given: 0 parameters"),
        ([{"params": []}], "nothing to train in the parameter groups: 0 parameters"),
    ],
    ids=["module", "iterator", "groups"],
)
def test_B39_kin_no_parameters_at_all(source: Any, text: str) -> None:
    assert str(refused(source, {})) == text


def test_B39_kin_every_bad_part_is_named_and_no_other() -> None:
    stages = [nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2).requires_grad_(False)]
    with pytest.raises(ConfigError) as caught:
        OptimizersContainer(stages, torch.optim.SGD, {"lr": 0.1})
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["model_parts[1]", "model_parts[2]"]
    assert "2 parameters, all 2 frozen" in caught.value.problems[1].what


def test_B39_kin_rules_that_freeze_everything_are_named(compose: Compose) -> None:
    config = compose("actor.optim.param_groups=[{pattern: '*', freeze: true}]")
    told = str(refused(three_layers(), config.actor.optim))
    assert "6 parameters, all 6 frozen" in told
    assert "by a freeze rule" in told
    assert "set requires_grad" not in told


def test_B39_kin_a_part_that_is_no_module_is_named(compose: Compose) -> None:
    parts = {"actor": nn.Linear(4, 2), "critic": None}
    with pytest.raises(OptimHydraError, match="critic"):
        build_optimizers(parts, compose())


def test_B39_kin_nothing_is_changed_when_a_part_is_refused(compose: Compose) -> None:
    parts = actor_and_frozen_critic()
    config = compose("actor.optim.param_groups=[{pattern: weight, freeze: true}]")
    with pytest.raises(ConfigError):
        build_optimizers(parts, config)
    assert parts["actor"].weight.requires_grad
