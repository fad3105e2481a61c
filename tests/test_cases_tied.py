"""Tied weights in the groups, as public bug reports met them.

Cases: B36.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from case_helpers import Compose, names_by, refused, train_once, values_of
from optim_hydra import (
    ConfigError,
    OptimizersContainer,
    build_optimizer,
    build_optimizers,
)
from wrapped_models import WRAPPERS

TIED = """\
actor:
  optim:
    weight_decay: 0.1
    param_groups:
      - {pattern: 'head.*', lr_mult: 0.5}
"""


class LM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.emb(tokens))


def two_tied_layers() -> list[nn.Module]:
    layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
    layers[1].weight = layers[0].weight
    return layers


def test_B36_a_pattern_finds_a_tied_weight_by_its_second_name(compose: Compose) -> None:
    optim = compose(yaml=TIED).actor.optim
    optimizer = build_optimizer(LM(), optim)
    assert values_of(optimizer, "lr", "weight_decay") == {"emb.weight": (5e-4, 0.1)}
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("wrap", ["distributed", "compiled", "checkpointed"])
def test_B36_kin_wrapped_models(wrap: str, one_process: None, compose: Compose) -> None:
    model = WRAPPERS[wrap](LM())
    optimizer = build_optimizer(model, compose(yaml=TIED).actor.optim)
    assert values_of(optimizer, "lr") == {"emb.weight": 5e-4}


def test_B36_kin_a_module_in_two_places_is_held_once() -> None:
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(4, 2))
    rule = {"pattern": "2.*", "lr_mult": 0.5, "expect": 2}
    optimizer = build_optimizer(model, {"param_groups": [rule]})
    assert names_by(optimizer, "lr") == {
        1e-3: ["3.weight", "3.bias"],
        5e-4: ["0.weight", "0.bias"],
    }
    train_once(optimizer, model)


def test_B36_kin_a_tied_weight_is_exempt_under_either_of_its_types() -> None:
    config = {"weight_decay": 0.1, "no_decay": ["embedding"]}
    rule = {"pattern": "head.*", "lr_mult": 0.5}
    optimizer = build_optimizer(LM(), {**config, "param_groups": [rule]})
    assert values_of(optimizer, "lr", "weight_decay") == {"emb.weight": (5e-4, 0.0)}


@pytest.mark.parametrize(
    "values",
    [
        ({"lr_mult": 0.5}, {"lr_mult": 0.1}),
        ({"lr_mult": 0.5}, {"optimizer": "SGD"}),
        ({"freeze": True}, {"lr": 0.5}),
        ({"lr_scheduler_type": "linear"}, {"lr_scheduler_type": "constant"}),
    ],
    ids=["rates", "classes", "freeze", "schedules"],
)
def test_B36_two_patterns_with_different_options_are_refused_with_both_names(
    values: tuple[dict[str, Any], ...],
) -> None:
    model = nn.ModuleDict({"lm": LM(), "other": nn.Linear(2, 2)})
    rules = [{"pattern": "*head.*", **values[0]}, {"pattern": "*emb.*", **values[1]}]
    error = refused(model, {"param_groups": rules})
    assert str(error) == (
        "lm.emb.weight is tied to lm.head.weight, which falls under param_groups[0]:"
        " let one of the two rules have it @ param_groups[1]"
    )


@pytest.mark.parametrize("values", [{"lr_mult": 0.5}, {"freeze": True}], ids=str)
def test_B36_two_patterns_with_equal_options_agree(values: dict[str, Any]) -> None:
    model = nn.ModuleDict({"lm": LM(), "other": nn.Linear(2, 2)})
    rules = [{"pattern": "*head.*", **values}, {"pattern": "*emb.*", **values}]
    found = values_of(build_optimizer(model, {"param_groups": rules}), "lr")
    expected = {} if "freeze" in values else {"lm.emb.weight": 5e-4}
    assert found == {**expected, "other.weight": 1e-3, "other.bias": 1e-3}


def test_B36_kin_two_types_that_hold_one_weight_are_told_of_the_tie() -> None:
    rules = [
        {"module_type": "Linear", "lr_mult": 0.5},
        {"module_type": "Embedding", "lr_mult": 0.1},
    ]
    assert "tied" in str(refused(LM(), {"param_groups": rules}))


def test_B36_kin_a_misspelt_second_name_is_answered_with_it() -> None:
    error = refused(LM(), {"param_groups": [{"pattern": "haed.*", "lr_mult": 0.5}]})
    assert "head.weight" in str(error)


def test_B36_kin_modules_of_one_optimizer_hold_it_once() -> None:
    first, second = two_tied_layers()
    rule = {"pattern": "second.weight", "lr_mult": 0.5}
    models = {"first": first, "second": second}
    optimizer = build_optimizer(models, {"param_groups": [rule]})
    assert values_of(optimizer, "lr") == {
        "first.bias": 1e-3,
        "second.bias": 1e-3,
        "first.weight": 5e-4,
    }


def test_B36_kin_parts_of_a_model_hold_it_once() -> None:
    layers = two_tied_layers()
    container = OptimizersContainer(layers, torch.optim.SGD, {"lr": 0.1})
    assert len(values_of(container, "lr")) == 3
    before = layers[0].weight.detach().clone()
    train_once(container, *layers)
    # Three rows of ones for each layer, of which neither sees the other's step.
    assert torch.allclose(layers[0].weight, before - 0.1 * 2 * 3)


def test_B36_kin_a_part_with_nothing_but_a_tie_needs_no_optimizer() -> None:
    layers = two_tied_layers()
    layers[1].bias = None
    container = OptimizersContainer(layers, torch.optim.SGD, {"lr": 0.1})
    assert container.names == ["0"]


def test_B36_kin_two_optimizers_do_not_share_a_weight(compose: Compose) -> None:
    actor, critic = two_tied_layers()
    with pytest.raises(ConfigError) as caught:
        build_optimizers({"actor": actor, "critic": critic}, compose())
    assert str(caught.value) == (
        "weight belongs to actor too, and both optimizers would update it: build one"
        " for both modules, build_optimizer({'actor': ..., 'critic': ...}, node)"
        " @ critic"
    )
