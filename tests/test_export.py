"""What is exported is loaded by torch itself, and training goes on bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.optim import Optimizer

from optim_hydra import (
    OptimizersContainer,
    build_optimizer,
    build_optimizers,
    export_optimizer_state_dict,
    load_optimizer_state_dict,
)
from optim_hydra.errors import WrongObjectError
from optim_hydra.saved_state import StateError
from saved_training import bits, layers, train

FLATTENED = StateDictOptions(flatten_optimizer_state_dict=True)
MUON = [{"ndim": 2, "optimizer": "Muon"}]


def two_groups(module: nn.Module, make: type[Optimizer], **extra: Any) -> Optimizer:
    weights = [p for p in module.parameters() if p.ndim > 1]
    rest = {"params": [p for p in module.parameters() if p.ndim < 2]}
    return make([{"params": weights}, {**rest, "weight_decay": 0.0}], **extra)


def load(form: str, module: nn.Module, optimizer: Optimizer, saved: Any) -> None:
    if form == "native":
        optimizer.load_state_dict(saved)
    else:
        options = FLATTENED if form == "flattened" else None
        set_optimizer_state_dict(module, optimizer, saved, options=options)


@pytest.mark.parametrize("form", ["native", "nested", "flattened"])
@pytest.mark.parametrize("name", ["AdamW", "SGD", "Adafactor", "RMSprop"])
def test_an_optimizer_made_by_hand_goes_on_with_what_is_exported(
    name: str, form: str
) -> None:
    momentum = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    module = layers()
    config = {
        "optimizer": name,
        "lr": 0.01,
        "weight_decay": 0.1,
        "override_optimizer_config": momentum,
        "param_groups": [{"ndim": 1, "weight_decay": 0.0}],
    }
    optimizer = build_optimizer(module, config)
    train(module, optimizer, range(3))

    twin = copy.deepcopy(module)
    make = getattr(torch.optim, name)
    theirs = two_groups(twin, make, lr=0.5, weight_decay=0.7, **momentum)
    exported = copy.deepcopy(export_optimizer_state_dict(optimizer, form))  # type: ignore[arg-type]
    load(form, twin, theirs, exported)
    train(module, optimizer, range(3, 6))
    train(twin, theirs, range(3, 6))
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))
    assert [group["weight_decay"] for group in theirs.param_groups] == [0.1, 0.0]


@pytest.mark.parametrize("form", ["nested", "flattened"])
def test_it_is_what_torch_makes_of_the_same_training(form: str) -> None:
    module = layers()
    optimizer = build_optimizer(module, {"no_decay": ["bias", "norm"]})
    train(module, optimizer, range(2))
    options = FLATTENED if form == "flattened" else None
    theirs = get_optimizer_state_dict(module, optimizer, options=options)
    ours = export_optimizer_state_dict(optimizer, form)  # type: ignore[arg-type]
    if form == "nested":
        assert bits(ours["state"]) == bits(theirs["state"])
        names = [group["params"] for group in ours["param_groups"]]
        assert names == [group["params"] for group in theirs["param_groups"]]
    else:
        assert bits(dict(sorted(ours.items()))) == bits(dict(sorted(theirs.items())))


def test_a_container_of_one_class_is_one_group_for_torch() -> None:
    parts = [nn.Linear(3, 3), nn.Linear(3, 2)]
    container = OptimizersContainer(parts, torch.optim.AdamW, {"lr": 0.1})
    whole = nn.Sequential(*parts)
    train_on(whole, container)
    twin = copy.deepcopy(whole)
    theirs = torch.optim.AdamW(twin.parameters(), lr=0.3)
    theirs.load_state_dict(
        copy.deepcopy(export_optimizer_state_dict(container, "native"))
    )
    train_on(whole, container)
    train_on(twin, theirs)
    assert bits(list(twin.parameters())) == bits(list(whole.parameters()))


def train_on(module: nn.Module, optimizer: Optimizer) -> None:
    optimizer.zero_grad()
    module(torch.ones(2, 3)).square().sum().backward()
    optimizer.step()


def test_several_classes_are_exported_by_name() -> None:
    module = layers()
    optimizer = build_optimizer(module, {"param_groups": MUON})
    train(module, optimizer, range(2))
    with pytest.raises(StateError) as caught:
        export_optimizer_state_dict(optimizer, "native")
    assert str(caught.value) == (
        "the native form has no place for several classes (AdamW, Muon): export the"
        " optimizers of the container one by one, or as nested"
    )
    for form in ("nested", "flattened"):
        exported = copy.deepcopy(export_optimizer_state_dict(optimizer, form))  # type: ignore[arg-type]
        again = build_optimizer(layers(), {"param_groups": MUON})
        report = load_optimizer_state_dict(again, exported)
        assert report.num_restored == len(list(module.parameters()))


def test_another_form_is_refused() -> None:
    optimizer = build_optimizer(layers(), {})
    with pytest.raises(WrongObjectError) as caught:
        export_optimizer_state_dict(optimizer, "flat")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "form='flat' is none of native, nested, flattened: did you mean flattened?"
    )


def test_groups_that_differ_in_the_last_digit_stay_apart() -> None:
    betas = [(torch.tensor(0.9 + i * 1e-6), torch.tensor(0.99)) for i in range(2)]
    named = list(layers().named_parameters())
    groups = [
        {"params": part, "betas": pair}
        for part, pair in zip((named[:2], named[2:]), betas, strict=True)
    ]
    optimizer = torch.optim.AdamW(groups, lr=torch.tensor(0.1), foreach=False)
    exported = export_optimizer_state_dict(optimizer, "nested")
    assert [group["betas"] for group in exported["param_groups"]] == betas


def test_what_two_optimizers_keep_once_each_is_exported_where_it_is_equal() -> None:
    whole = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    node = {"optimizer_impl": "pytorch_optimizer", "optimizer": "MADGRAD"}
    parts = {"first": whole[0], "second": whole[1]}
    container = build_optimizers(parts, dict.fromkeys(parts, node))
    train_on(whole, container)
    twin = copy.deepcopy(whole)
    theirs = type(container["first"])(twin.parameters())
    exported = copy.deepcopy(export_optimizer_state_dict(container, "native"))
    theirs.load_state_dict(exported)
    train_on(whole, container)
    train_on(twin, theirs)
    assert bits(list(twin.parameters())) == bits(list(whole.parameters()))

    container["second"].step()
    with pytest.raises(StateError) as caught:
        export_optimizer_state_dict(container, "native")
    assert str(caught.value) == (
        "the native form has one k, and the optimizers of the container have several"
        " values: export them one by one, or as nested"
    )
