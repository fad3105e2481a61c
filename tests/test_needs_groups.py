"""What classes need of their parameters, groups and model is given by one node."""

from __future__ import annotations

import torch
from pytorch_optimizer import WSAM, AdaMuon, Muon
from torch import nn

from case_helpers import refused
from optim_hydra import build_optimizer

EXTRA = "override_optimizer_config"
MUON = {"optimizer_impl": "pytorch_optimizer", "optimizer": "Muon", "lr": 0.02}
USE_MUON = {"ndim": 2, EXTRA: {"use_muon": True}}


def test_a_class_with_a_flag_is_told_its_matrices(module: nn.Module) -> None:
    assert str(refused(module, MUON)) == (
        "Muon has to be told its matrices by use_muon: add the rule {role: hidden,"
        " ndim: 2, override_optimizer_config: {use_muon: true}}; the others get false"
        " @ param_groups"
    )
    optimizer = build_optimizer(module, {**MUON, "param_groups": [USE_MUON]})
    assert type(optimizer) is Muon
    flags = {g["param_names"][0]: g["use_muon"] for g in optimizer.param_groups}
    assert flags == {"weight": True, "bias": False}


def test_a_flag_in_the_node_holds_for_all_and_one_of_a_group_dict_stays() -> None:
    matrix = nn.Linear(4, 2, bias=False)
    optimizer = build_optimizer(matrix, {**MUON, EXTRA: {"use_muon": True}})
    assert [group["use_muon"] for group in optimizer.param_groups] == [True]
    groups = [{"params": [matrix.weight], "use_muon": True}]
    node = {"optimizer_impl": "pytorch_optimizer", "optimizer": "AdaMuon"}
    optimizer = build_optimizer(groups, node)
    assert type(optimizer) is AdaMuon
    assert [group["use_muon"] for group in optimizer.param_groups] == [True]


def test_a_class_of_model_and_parameters_gets_both(module: nn.Module) -> None:
    node = {
        "optimizer_impl": "pytorch_optimizer",
        "optimizer": "WSAM",
        "lr": 0.1,
        "no_decay": ["1d"],
        EXTRA: {"base_optimizer": {"optimizer": "SGD"}, "rho": 0.1},
    }
    optimizer = build_optimizer(module, node, provides="closure")
    assert type(optimizer) is WSAM
    assert optimizer.model is module
    decays = [group["weight_decay"] for group in optimizer.base_optimizer.param_groups]
    assert decays == [0.01, 0.0]


def test_a_class_that_wants_the_loss_gets_it_through_a_container(
    module: nn.Module,
) -> None:
    rule = {"ndim": 2, "optimizer_impl": "pytorch_optimizer", "optimizer": "AliG"}
    node = {"optimizer": "SGD", "lr": 0.1, "param_groups": [rule]}
    optimizer = build_optimizer(module, node, provides="loss_closure")
    before = [parameter.detach().clone() for parameter in module.parameters()]
    loss = module(torch.ones(3, 4)).square().mean()
    loss.backward()
    optimizer.step(lambda: loss)
    pairs = zip(before, module.parameters(), strict=True)
    assert all(not torch.equal(old, new) for old, new in pairs)
