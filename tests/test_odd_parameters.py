"""Odd modules, parameters and group dicts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from case_helpers import sgd
from optim_hydra import (
    ConfigError,
    build_optimizer,
)
from optim_hydra.errors import WrongObjectError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lr": "high"}, "parameter group 0, lr: 'high' is not a float"),
        ({"lr": -1}, "parameter group 0, lr: -1 is not a finite float >= 0"),
        ({"lr": None}, "parameter group 0, lr: null is not allowed"),
        ({"betas": [0.1, 0.2, 0.3]}, "parameter group 0, betas: betas has 3 of the 2"),
        ({"foreach": "yes"}, "parameter group 0, foreach: 'yes' is not a bool"),
        ({"weight_deacy": 0.1}, "parameter group 0 has the key weight_deacy, which"),
        ({1: 0.1}, "parameter group 0 has the key 1, which AdamW does not take"),
    ],
)
def test_group_dicts_are_checked_like_a_node(
    module: nn.Module, values: dict[Any, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer([{"params": module.parameters(), **values}], {})
    assert str(caught.value).startswith(message)


def test_text_in_a_group_dict_becomes_a_number(module: nn.Module) -> None:
    groups = [{"params": module, "lr": "1e-3"}]
    optimizer = build_optimizer(groups, sgd())
    assert optimizer.param_groups[0]["lr"] == 1e-3
    assert len(optimizer.param_groups[0]["params"]) == 2


@pytest.mark.parametrize(
    "source",
    [None, 3, "model", {}, {1}, [1], [{"params": 3}], [{"params": "x"}], torch.ones(1)],
    ids=str,
)
def test_what_holds_no_parameters_is_refused(source: Any) -> None:
    with pytest.raises(WrongObjectError):
        build_optimizer(source, {})


def test_a_lazy_module_is_refused_before_anything_is_built() -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(nn.LazyLinear(2), {})
    assert str(caught.value) == (
        "the shapes of weight, bias are not known yet: run the module once before"
        " building its optimizer"
    )


def test_sparse_gradients_can_not_be_clipped() -> None:
    module = nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Linear(4, 2))
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, sgd(clip_grad=1.0))
    assert str(caught.value) == (
        "sparse gradients can't be clipped: set clip_grad=null @ clip_grad"
    )


def test_names_of_the_users_own_are_kept() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.my_orig_mod = nn.Linear(2, 2, bias=False)
            self._orig_mod = nn.Linear(2, 2, bias=False)
            self.module = nn.Linear(2, 2, bias=False)

    names = build_optimizer(Model(), {}).param_groups[0]["param_names"]
    assert names == ["my_orig_mod.weight", "weight", "module.weight"]


def test_names_of_wrapped_modules_are_canonical(module: nn.Module) -> None:
    wrapped = torch.compile(nn.DataParallel(nn.Sequential(module)))
    names = build_optimizer(wrapped, {}).param_groups[0]["param_names"]
    assert names == ["0.weight", "0.bias"]


def test_sparse_gradients_of_bare_parameters_are_named_at_the_step() -> None:
    module = nn.Embedding(7, 4, sparse=True)
    optimizer = build_optimizer(module.parameters(), sgd(clip_grad=1.0))
    module(torch.tensor([1])).sum().backward()
    with pytest.raises(ConfigError, match="set clip_grad=null"):
        optimizer.step()
    frozen = nn.Sequential(module.requires_grad_(False), nn.Linear(4, 2))
    assert build_optimizer(frozen, sgd(clip_grad=1.0))


def test_groups_of_another_optimizer_and_tensor_rates_are_taken(module) -> None:
    old = build_optimizer(module, {"lr": 1e-3})
    copied = build_optimizer(old.param_groups, {"lr": 1e-2})
    assert copied.param_groups[0]["lr"] == 1e-3
    rate = torch.tensor(1e-3)
    groups = [{"params": module.parameters(), "lr": rate}]
    assert build_optimizer(groups, {}).param_groups[0]["lr"] is rate
    groups = [{"params": module.parameters(), "eps": (None, 1e-2)}]
    adafactor = build_optimizer(groups, {"optimizer": "Adafactor"})
    assert adafactor.param_groups[0]["eps"] == (None, 1e-2)


def test_names_of_old_groups_stay_with_their_parameters(module) -> None:
    old = build_optimizer(module, sgd())
    module.weight.requires_grad_(False)
    (group,) = build_optimizer(old.param_groups, sgd()).param_groups
    assert (group["params"], group["param_names"]) == ([module.bias], ["bias"])
    wrong = {"params": module.parameters(), "param_names": ["weight"]}
    with pytest.raises(WrongObjectError) as caught:
        build_optimizer([wrong], sgd())
    assert str(caught.value) == (
        "a group has 1 param_names for 2 parameters: give one for each, or none"
    )
