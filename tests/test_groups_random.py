"""Random rules on random modules: no parameter is lost, doubled or out of order."""

from __future__ import annotations

import warnings
from fnmatch import fnmatchcase
from typing import Any

import torch
from hypothesis import assume, given, settings
from torch import nn
from torch.optim import Optimizer

from optim_hydra import ConfigError, build_optimizer
from random_groups import Place, Plan, cases, places

Value = tuple[str, float, float]  # class, lr, weight_decay
Case = tuple[Plan, dict[str, Any]]
# The first optimizer of a process is slow, because torch imports more for it.
unhurried = settings(deadline=None, max_examples=100)


def holds(rule: dict[str, Any], place: Place) -> bool:
    ndim = place.parameter.ndim
    types = [cls.__name__ for cls in type(place.owner).__mro__]
    return (
        fnmatchcase(place.name, rule.get("pattern", "*"))
        and rule.get("module_type", "Module") in types
        and rule.get("ndim", ndim) == ndim
        and rule.get("min_ndim", 0) <= ndim
    )


def rule_of(parameter: nn.Parameter, model: nn.Module, config: dict[str, Any]) -> Any:
    """Return the first rule that holds for any place of a parameter, or no rule."""
    own = [place for place in places(model) if place.parameter is parameter]
    matching = (
        rule
        for rule in config["param_groups"]
        if any(holds(rule, place) for place in own)
    )
    return next(matching, {})


def value_of(rule: dict[str, Any], ndim: int, config: dict[str, Any]) -> Value:
    lr = rule.get("lr", config["lr"] * rule.get("lr_mult", 1.0))
    decay = 0.0 if ndim <= 1 and config["no_decay"] else config["weight_decay"]
    decay = rule.get("weight_decay", decay * rule.get("weight_decay_mult", 1.0))
    return rule.get("optimizer", config["optimizer"]), lr, decay


def assignment(model: nn.Module, config: dict[str, Any]) -> dict[Value, list[str]]:
    """Work out plainly which names have which values, in the order of the model."""
    names: dict[Value, list[str]] = {}
    for name, parameter in model.named_parameters():
        rule = rule_of(parameter, model, config)
        if parameter.requires_grad and "freeze" not in rule:
            value = value_of(rule, parameter.ndim, config)
            names.setdefault(value, []).append(name)
    return names


def build(model: nn.Module, config: dict[str, Any]) -> Optimizer:
    assume(assignment(model, config))  # nothing to train is refused
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about rules that match frozen ones only
        try:
            return build_optimizer(model, config)
        except ConfigError as error:
            # Two patterns that each match another name of one tied parameter.
            assume(not any("is tied to" in problem.what for problem in error.problems))
            raise


def parts(optimizer: Optimizer) -> list[Optimizer]:
    return list(getattr(optimizer, "optimizers", [optimizer]))


def settings_of(group: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in group.items() if k not in {"params", "param_names"}}


@unhurried
@given(case=cases())
def test_every_trainable_parameter_is_in_exactly_one_group(case: Case) -> None:
    plan, config = case
    model = plan.model()
    kept = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and "freeze" not in rule_of(parameter, model, config)
    }
    optimizer = build(model, config)
    held = [
        (name, parameter)
        for group in optimizer.param_groups
        for name, parameter in zip(group["param_names"], group["params"], strict=True)
    ]
    assert len(held) == len(kept)
    assert {name: id(parameter) for name, parameter in held} == {
        name: id(parameter) for name, parameter in kept.items()
    }


@unhurried
@given(case=cases())
def test_a_freeze_rule_freezes_what_it_wins_and_nothing_else(case: Case) -> None:
    plan, config = case
    model, before = plan.model(), plan.model()
    build(model, config)
    for old, new in zip(before.parameters(), model.parameters(), strict=True):
        frozen = "freeze" in rule_of(old, before, config)
        assert new.requires_grad == (old.requires_grad and not frozen)
        assert torch.equal(old, new)


@unhurried
@given(case=cases())
def test_the_first_matching_rule_decides_over_class_rate_and_decay(case: Case) -> None:
    plan, config = case
    model = plan.model()
    expected = assignment(model, config)
    optimizer = build(model, config)
    found = {
        (type(part).__name__, group["lr"], group["weight_decay"]): group["param_names"]
        for part in parts(optimizer)
        for group in part.param_groups
    }
    assert found == expected


@unhurried
@given(case=cases())
def test_several_classes_make_a_container_and_one_class_does_not(case: Case) -> None:
    plan, config = case
    model = plan.model()
    classes = {name for name, _, _ in assignment(model, config)}
    optimizer = build(model, config)
    if len(classes) == 1:
        assert {type(optimizer).__name__} == classes
        assert type(optimizer).__module__.startswith("torch.optim.")
    else:
        assert len(optimizer) == len(classes)
        assert {type(part).__name__ for part in optimizer} == classes


@unhurried
@given(case=cases())
def test_equal_models_give_equal_groups_in_equal_order(case: Case) -> None:
    plan, config = case
    first, second = (
        [
            (type(part).__name__, settings_of(group), group["param_names"])
            for part in parts(build(plan.model(), config))
            for group in part.param_groups
        ]
        for _ in range(2)
    )
    assert first == second


@unhurried
@given(case=cases())
def test_the_order_inside_a_group_is_the_models(case: Case) -> None:
    plan, config = case
    model = plan.model()
    order = [name for name, _ in model.named_parameters()]
    for group in build(model, config).param_groups:
        assert group["param_names"] == [n for n in order if n in group["param_names"]]


@unhurried
@given(case=cases())
def test_no_two_groups_of_an_optimizer_have_equal_values(case: Case) -> None:
    plan, config = case
    for part in parts(build(plan.model(), config)):
        values = [settings_of(group) for group in part.param_groups]
        assert all(values.count(value) == 1 for value in values)
        rates = [(group["lr"], group["weight_decay"]) for group in part.param_groups]
        assert len(set(rates)) == len(rates)
