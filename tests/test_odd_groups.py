"""Odd groups: what is added later, shared deeply, scripted, sparse, or left open."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import (
    ConfigError,
    OptimizersContainer,
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
)
from optim_hydra.errors import WrongObjectError
from optim_hydra.registry import register_builder

SPLIT = {"param_groups": [{"pattern": "1.*", "optimizer": "SGD", "lr": 0.2}]}


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))


def rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    return {
        name: round(group["lr"], 6)
        for group in optimizer.param_groups
        for name in group["param_names"]
    }


def test_a_group_that_is_added_later_follows_from_its_own_rate() -> None:
    config = {
        "lr": 0.1,
        "lr_scheduler_type": "linear",
        "total_training_steps": 10,
        **SPLIT,
    }
    container = build_optimizer(two_layers(), config)
    scheduler = build_lr_scheduler(container, config)
    added = nn.Parameter(torch.zeros(2))
    container.add_param_group({"params": [("new", added)], "lr": 1.0})
    container.step()
    scheduler.step()
    assert rates(container) == {
        "0.weight": 0.09,
        "0.bias": 0.09,
        "1.weight": 0.18,
        "1.bias": 0.18,
        "new": 0.9,
    }
    assert type(container["AdamW"].param_groups[1]["params"][0]) is nn.Parameter


@pytest.mark.parametrize("cell", [nn.GRU(4, 4, 2), nn.LSTM(4, 4)])
def test_every_matrix_of_a_recurrent_layer_is_hidden(cell: nn.Module) -> None:
    config = {"param_groups": [{"role": "hidden", "lr": 0.5}]}
    optimizer = build_optimizer(nn.Sequential(cell, nn.Linear(4, 2)), config)
    matrices = [name for name, p in cell.named_parameters() if p.ndim == 2]
    found = [name for name, lr in rates(optimizer).items() if lr == 0.5]
    assert sorted(found) == sorted(f"0.{name}" for name in matrices)


def test_the_projections_of_an_attention_layer_are_hidden() -> None:
    model = nn.Sequential(nn.MultiheadAttention(4, 2), nn.Linear(4, 2))
    config = {"param_groups": [{"role": "hidden", "lr": 0.5}]}
    found = [n for n, lr in rates(build_optimizer(model, config)).items() if lr == 0.5]
    assert found == ["0.in_proj_weight", "0.out_proj.weight"]


def test_modules_that_share_modules_are_walked_in_good_time() -> None:
    class Pair(nn.Module):
        def __init__(self, child: nn.Module) -> None:
            super().__init__()
            self.a = child
            self.b = child

    model: nn.Module = nn.Linear(2, 2)
    for _ in range(40):
        model = Pair(model)
    optimizer = build_optimizer(model, {"param_groups": [{"regex": "weight$"}]})
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 2


def test_a_scripted_model_is_grouped_like_its_source() -> None:
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)))
    optimizer = build_optimizer(model, {"no_decay": ["1d"]})
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.01, 0.0]


def test_a_sparse_embedding_that_a_rule_freezes_is_not_clipped() -> None:
    model = nn.Sequential(nn.Embedding(3, 2, sparse=True), nn.Linear(2, 2))
    rule = {"role": "embedding", "freeze": True}
    optimizer = build_optimizer(model, {"clip_grad": 1.0, "param_groups": [rule]})
    assert rates(optimizer).keys() == {"1.weight", "1.bias"}


@pytest.mark.parametrize("match", [{"expect": 0}, {"strict": False}])
def test_a_schedule_of_a_rule_without_parameters_is_left_out(
    match: dict[str, Any],
) -> None:
    rule = {"pattern": "none", "lr_scheduler_type": "linear", "expect": 0}
    config = {"param_groups": [rule], "total_training_steps": 4, **match}
    config.pop("expect", None)
    optimizer = build_optimizer(two_layers(), config)
    assert build_lr_scheduler(optimizer, config).get_last_lr() == [0.001]


def test_blocks_that_change_places_are_still_trained() -> None:
    model = two_layers()
    optimizer = build_optimizer(model, {})
    model[0], model[1] = model[1], model[0]
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def test_the_implementation_reaches_the_class_of_a_rule() -> None:
    rule = {"pattern": "1.*", "optimizer": "Adam"}
    config = {"implementation": "fused", "param_groups": [rule]}
    container = build_optimizer(two_layers(), config)
    assert all(group["fused"] for group in container.param_groups)


def test_a_class_with_one_rate_refuses_rules_that_it_would_ignore() -> None:
    config = {
        "optimizer_impl": "pytorch_optimizer",
        "optimizer": "Prodigy",
        "lr": 1.0,
        "param_groups": [{"pattern": "0.*", "lr": 0.0}],
    }
    with pytest.raises(ConfigError, match="wants one lr for all of its parameters"):
        build_optimizer(two_layers(), config)


def test_a_builder_that_drops_the_groups_is_refused() -> None:
    def careless(cls, parameters, module, **arguments):
        return cls(module.parameters(), **arguments)

    register_builder("torch.optim", "SGD")(careless)
    config = {"optimizer": "SGD", "param_groups": [{"pattern": "0.*", "lr": 0.5}]}
    with pytest.raises(ConfigError) as caught:
        build_optimizer(two_layers(), config)
    assert str(caught.value) == (
        "the builder of SGD makes other groups than it was given: pass its"
        " `parameters` on @ optimizer"
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"layer_decay": {"factor": "???"}}, "no value is given (???): set factor"),
        (
            {
                "optimizer_impl": "pytorch_optimizer",
                "optimizer": "Lookahead",
                "override_optimizer_config": {
                    "optimizer": {
                        "optimizer": "AdamW",
                        "override_optimizer_config": {"amsgrad": "???"},
                    }
                },
            },
            "no value is given (???): set amsgrad",
        ),
        (
            {
                "optimizer_impl": "pytorch_optimizer",
                "optimizer": "Lookahead",
                "override_optimizer_config": {"optimizer": {"optimizer": 5}},
            },
            "5 is not a name: write one such as AdamW",
        ),
    ],
    ids=["factor", "wrapped argument", "wrapped class"],
)
def test_what_is_left_open_is_said(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(two_layers(), config)
    assert caught.value.problems[0].what == message


@pytest.mark.parametrize(
    "call",
    [
        lambda: build_optimizer(two_layers(), {}, provides=1),  # type: ignore[arg-type]
        lambda: build_optimizer(two_layers(), {}, whole={}),  # type: ignore[arg-type]
        lambda: OptimizersContainer(1, torch.optim.SGD),  # type: ignore[arg-type]
        lambda: OptimizersContainer([two_layers()], torch.optim.SGD, [1]),  # type: ignore[arg-type]
        lambda: OptimizersContainer.of({}),
        lambda: build_optimizers({1: two_layers()}, {}),  # type: ignore[dict-item]
        lambda: build_optimizer(two_layers(), SPLIT).add_param_group({}),
    ],
    ids=["provides", "whole", "parts", "kwargs", "none", "number", "group"],
)
def test_python_arguments_of_the_wrong_kind_are_refused(call) -> None:
    with pytest.raises(WrongObjectError):
        call()
