"""Entries that nothing reads are named; what is meant, spelt otherwise, is read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import (
    build_optimizer,
    build_optimizers,
    export_optimizer_state_dict,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.errors import OptimHydraWarning
from saved_training import FORMS, in_each_form, kept_for, refused_load, trained

NO_STATE = (
    "this is no saved optimizer state ({}): give what optimizer_state_dict(optimizer),"
    " optimizer.state_dict() or torch.distributed.checkpoint made"
)
State = dict[str, Any]


def native(change: Callable[[State], Any], names: bool = False) -> State:
    module = nn.Linear(4, 2)
    given = module.named_parameters() if names else module.parameters()
    optimizer = torch.optim.AdamW(given)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    saved: State = copy.deepcopy(optimizer.state_dict())
    change(saved)
    return saved


def as_text(saved: State) -> None:
    saved["state"] = {str(key): value for key, value in saved["state"].items()}


@pytest.mark.parametrize("names", [True, False])
def test_numbers_that_became_text_are_read(names: bool) -> None:
    expected, resumed = (build_optimizer(nn.Linear(4, 2), {}) for _ in range(2))
    for optimizer, change in ((expected, lambda _: None), (resumed, as_text)):
        saved = native(change, names)
        if names:
            load_optimizer_state_dict(optimizer, saved)
        else:
            with pytest.warns(OptimHydraWarning, match="it was matched by order"):
                load_optimizer_state_dict(optimizer, saved)
    assert kept_for(resumed) == kept_for(expected) != {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda s: s["param_groups"][0].update(params=[5, 6]),
            "it has state of 0, 1, which is in none of its groups",
        ),
        (
            lambda s: s["state"].update({99: {}}),
            "it has state of 99, which is in none of its groups",
        ),
        (
            lambda s: s["state"].update({"99": {}}),
            "it has state of 99, which is in none of its groups",
        ),
        (
            lambda s: s["param_groups"][0].update(param_names=["weight"]),
            "a group has 2 parameters and 1 names",
        ),
        (
            lambda s: s["param_groups"][0].update(param_names=["bias", "bias"]),
            "bias is in its groups twice",
        ),
        (
            lambda s: s["param_groups"][0].update(params=[0, 0]),
            "0 is in its groups twice",
        ),
        (
            lambda s: s["param_groups"][0].update(params=[True, 0]),
            "a group has list where a list of names or numbers is due",
        ),
    ],
)
def test_groups_that_do_not_have_the_state_are_refused(
    change: Callable[[State], Any], why: str
) -> None:
    message = refused_load(build_optimizer(nn.Linear(4, 2), {}), native(change))
    assert message == NO_STATE.format(why)


def test_state_of_a_name_that_no_group_has_is_refused(module: nn.Module) -> None:
    saved = FORMS["nested"](module, trained(module, {}))
    saved["state"]["weigth"] = saved["state"].pop("weight")
    message = refused_load(build_optimizer(module, {}), saved)
    why = "it has state of weigth, which is in none of its groups"
    assert message == NO_STATE.format(why)


def test_a_mapping_that_belongs_to_no_parameter_is_restored(module: nn.Module) -> None:
    config = {"optimizer_impl": "pytorch_optimizer", "optimizer": "EmoNavi"}
    optimizer = trained(module, config)
    saved = copy.deepcopy(optimizer.state_dict())
    assert isinstance(saved["state"]["ema"], dict)
    resumed = build_optimizer(copy.deepcopy(module), config)
    load_optimizer_state_dict(resumed, saved)
    assert resumed.state["ema"] == optimizer.state["ema"]  # type: ignore[index]


@pytest.mark.parametrize(
    "entry",
    [
        "state.weight.exp_avg2",
        "param_groups.weight.foo",
        "stat.weight.exp_avg",
        "optimhydra.weight",
        "shared.foo.bar",
    ],
)
def test_an_entry_that_nothing_reads_is_named(entry: str, module: nn.Module) -> None:
    optimizer = trained(module, {})
    saved = {**optimizer_state_dict(optimizer), entry: torch.ones(1), "run": 7}
    resumed = build_optimizer(copy.deepcopy(module), {})
    with pytest.warns(OptimHydraWarning) as caught:
        load_optimizer_state_dict(resumed, saved)
    assert [str(each.message) for each in caught] == [
        f"nothing reads {entry}: left out"
    ]
    assert kept_for(resumed) == kept_for(optimizer)


@pytest.mark.parametrize("form", ["torch", "nested", "flattened"])
def test_a_key_that_the_class_does_not_keep_is_restored_and_named(
    form: str, module: nn.Module
) -> None:
    optimizer = trained(module, {})
    optimizer.state[module.weight]["ema"] = torch.ones(2, 4)
    saved = FORMS[form](module, optimizer)
    resumed = build_optimizer(copy.deepcopy(module), {})
    with pytest.warns(OptimHydraWarning) as caught:
        load_optimizer_state_dict(resumed, saved)
    assert [str(each.message) for each in caught] == [
        "no class of these parameters keeps state.weight.ema: restored as saved"
    ]
    assert kept_for(resumed) == kept_for(optimizer)


def test_what_is_there_to_be_loaded_into_is_left_out_without_a_word(
    module: nn.Module,
) -> None:
    config = {"override_optimizer_config": {"amsgrad": True}}
    template = optimizer_state_dict(build_optimizer(module, config), templates=True)
    saved = {**template, **optimizer_state_dict(trained(module, {}))}
    plain = {k: v for k, v in saved.items() if not k.endswith("max_exp_avg_sq")}
    assert len(plain) < len(saved)
    resumed = build_optimizer(copy.deepcopy(module), config)
    told = refused_load(resumed, saved)
    assert told == (
        "amsgrad is on and was off when the state of weight was saved: what it needs"
        " is missing"
    )
    load_optimizer_state_dict(resumed, saved, on_resume="checkpoint")


@pytest.mark.parametrize("names", [["", "b", "c"], [".", "..", "a"], ["a.", ".a", "a"]])
@pytest.mark.parametrize("form", ["ours", "native", "nested", "flattened"])
def test_names_of_dots_and_nothing_are_read_back(names: list[str], form: str) -> None:
    def made() -> torch.optim.Optimizer:
        torch.manual_seed(0)
        named = [(name, nn.Parameter(torch.randn(2, 3))) for name in names]
        return torch.optim.AdamW(named, lr=0.1)

    first, resumed = made(), made()
    for parameter in first.param_groups[0]["params"]:
        parameter.grad = torch.randn_like(parameter)
    first.step()
    saved: Any = optimizer_state_dict(first)
    if form != "ours":
        saved = export_optimizer_state_dict(first, form)  # type: ignore[arg-type]
    load_optimizer_state_dict(resumed, saved)
    assert kept_for(resumed) == kept_for(first) != {}


@in_each_form
def test_state_of_another_module_is_not_taken_for_this_ones(form: str) -> None:
    actor = nn.ModuleDict({"actor": nn.Linear(4, 2)})
    optimizer = build_optimizer(actor, {})
    for parameter in actor.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    saved = FORMS[form](actor, optimizer)
    node = {"_full_key_": "critic.optim"}
    critic = build_optimizer(nn.Linear(4, 2), node)
    assert refused_load(critic, saved) == (
        "the saved state is that of actor, and this node stands at critic.optim: to"
        " load it all the same, take the name out,"
        " {k.replace('.actor.', '.', 1): v for k, v in saved.items()} @ critic.optim"
    )
    for at in ("actor.optim", "trainer.actor.optim", "optim"):
        resumed = build_optimizer(nn.Linear(4, 2), {"_full_key_": at})
        assert load_optimizer_state_dict(resumed, saved).part == "actor"


def test_the_way_that_is_told_to_load_it_all_the_same_is_one() -> None:
    actor = nn.Linear(4, 2)
    container = build_optimizers({"actor": actor}, {"actor": {"lr": 0.1}})
    for parameter in actor.parameters():
        parameter.grad = torch.ones_like(parameter)
    container.step()
    saved = container.state_dict()
    critic = build_optimizer(nn.Linear(4, 2), {"_full_key_": "critic.optim", "lr": 0.1})
    renamed = {k.replace(".actor.", ".", 1): v for k, v in saved.items()}
    report = load_optimizer_state_dict(critic, renamed)
    assert str(report) == "restored the state of 2 parameters"
    assert kept_for(critic) == kept_for(container["actor"])
