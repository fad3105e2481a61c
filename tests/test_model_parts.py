"""Several parts of one model: one optimizer, a container, and rules for the whole."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW

from optim_hydra import ConfigError, OptimizersContainer, build_optimizer
from optim_hydra.errors import WrongObjectError


class Stage(nn.Module):
    """A part of a pipeline: it has some layers of the whole, under their names."""

    def __init__(self, whole: nn.Module, names: list[str]) -> None:
        super().__init__()
        for name in names:
            self.add_module(name, getattr(whole, name))


def whole_model() -> nn.Module:
    model = nn.Module()
    model.embed = nn.Embedding(7, 4)
    model.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4)) for _ in range(2)])
    model.head = nn.Linear(4, 7)
    return model


RULES = {
    "param_groups": [
        {"pattern": "embed.*", "lr": 0.1},
        {"role": "head", "lr": 0.2},
    ],
    "layer_decay": {"factor": 0.5},
}


def rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    return {
        name: group["lr"]
        for group in optimizer.param_groups
        for name in group["param_names"]
    }


def test_parts_in_a_list_are_one_model() -> None:
    model = whole_model()
    parts = [Stage(model, ["embed", "blocks"]), Stage(model, ["head"])]
    assert rates(build_optimizer(parts, RULES)) == rates(build_optimizer(model, RULES))


def test_a_stage_is_grouped_as_the_whole_model_is() -> None:
    model = whole_model()
    wanted = rates(build_optimizer(model, RULES))
    with torch.device("meta"):
        whole = whole_model()
    for names in (["embed"], ["blocks"], ["head"]):
        stage = Stage(model, names)
        found = rates(build_optimizer(stage, RULES, whole=whole))
        assert found == {n: lr for n, lr in wanted.items() if n.split(".")[0] in names}
    with pytest.raises(ConfigError, match="'embed\\.\\*' matches no parameter"):
        build_optimizer(Stage(model, ["head"]), RULES)


def test_a_rule_that_the_whole_does_not_match_is_an_error_on_every_stage() -> None:
    model = whole_model()
    rules = {"param_groups": [{"pattern": "embd.*", "lr": 0.1}]}
    for names in (["embed"], ["head"]):
        with pytest.raises(ConfigError, match=r"did you mean embed\.weight"):
            build_optimizer(Stage(model, names), rules, whole=model)


def test_a_part_of_another_model_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(nn.Linear(2, 2), RULES, whole=whole_model())
    assert str(caught.value).startswith(
        "the whole model has no parameter weight: give the model that this part was"
        " cut from"
    )


def test_parts_with_equal_names_are_numbered() -> None:
    parts = [nn.Linear(2, 2), nn.Linear(2, 2)]
    optimizer = build_optimizer(parts, {"param_groups": [{"pattern": "1.*", "lr": 1}]})
    assert rates(optimizer) == {
        "0.weight": 0.001,
        "0.bias": 0.001,
        "1.weight": 1.0,
        "1.bias": 1.0,
    }


def test_a_container_has_one_optimizer_of_the_class_for_each_part() -> None:
    model = whole_model()
    parts = [Stage(model, ["embed", "blocks"]), Stage(model, ["head"])]
    container = OptimizersContainer(parts, AdamW, {"lr": 0.5, "betas": (0.8, 0.9)})
    assert len(container) == 2
    assert [type(inner) for inner in container] == [AdamW, AdamW]
    assert set(rates(container)) == {name for name, _ in model.named_parameters()}
    assert {group["betas"] for group in container.param_groups} == {(0.8, 0.9)}


def test_a_weight_tied_over_two_parts_is_updated_once() -> None:
    model = whole_model()
    model.head.weight = model.embed.weight
    parts = [Stage(model, ["embed", "blocks"]), Stage(model, ["head"])]
    container = OptimizersContainer(parts, SGD, {"lr": 0.1})
    held = [id(p) for group in container.param_groups for p in group["params"]]
    assert sorted(held) == sorted(map(id, model.parameters()))


@pytest.mark.parametrize(
    ("parts", "cls", "kwargs", "error", "message"),
    [
        ([], SGD, {}, WrongObjectError, "model_parts holds no modules"),
        ([3], SGD, {}, WrongObjectError, "model_parts holds no modules"),
        ([nn.Linear(2, 2)], "SGD", {}, WrongObjectError, "optimizer_cls is 'SGD'"),
        ([nn.Linear(2, 2)], SGD, {"lrr": 1}, ConfigError, "SGD takes no lrr"),
        ([nn.Linear(2, 2)], SGD, {"lr": -1.0}, ConfigError, "Invalid learning rate"),
        (
            [nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)],
            SGD,
            {},
            ConfigError,
            r"nothing to train in one of the 2 parts: .* @ model_parts\[1\]",
        ),
    ],
    ids=["none", "no module", "text", "typing error", "range", "frozen"],
)
def test_wrong_parts_are_refused(parts, cls, kwargs, error, message: str) -> None:
    with pytest.raises(error, match=message):
        OptimizersContainer(parts, cls, kwargs)
