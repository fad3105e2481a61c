"""Random groups at saving and at loading: each name keeps its state and no other."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import Optimizer

from case_helpers import values_of
from optim_hydra import (
    ConfigError,
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from random_groups import Plan, cases, places, rules
from saved_training import bits, bits_of, kept_for

# The first optimizer of a process is slow, because torch imports more for it.
unhurried = settings(deadline=None, max_examples=80)
KEYS = ("lr", "weight_decay", "eps")
Regrouping = tuple[Plan, dict[str, Any], dict[str, Any]]


@st.composite
def regroupings(draw: st.DrawFn) -> Regrouping:
    """Draw a model's plan and two nodes for it, of classes that both keep state."""
    plan, before = draw(cases())
    names = [place.name for place in places(plan.model())]
    after = {
        **before,
        "lr": draw(st.sampled_from([0.25, 0.5])),
        "optimizer": draw(st.sampled_from(["AdamW", "SGD"])),
        "no_decay": draw(st.sampled_from([[], ["1d"], ["bias", "norm"]])),
        "param_groups": draw(st.lists(rules(names), max_size=5)),
    }
    return plan, with_state(before), with_state(after)


def with_state(config: dict[str, Any]) -> dict[str, Any]:
    groups = [with_state(rule) for rule in config.get("param_groups", [])]
    named = {"SGD": "RMSprop"}
    own = {k: named.get(v, v) for k, v in config.items() if k == "optimizer"}
    return {**config, **own, **({"param_groups": groups} if groups else {})}


def built(plan: Plan, config: dict[str, Any]) -> tuple[nn.Module, Optimizer]:
    model = plan.model()
    assume(any(parameter.requires_grad for parameter in model.parameters()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about rules that match frozen ones only
        try:
            return model, build_optimizer(model, config)
        except ConfigError as error:
            whats = [problem.what for problem in error.problems]
            frozen = any("nothing to train" in what for what in whats)
            assume(not frozen and not any("is tied to" in what for what in whats))
            raise


def saved_run(plan: Plan, config: dict[str, Any]) -> tuple[Optimizer, dict[str, Any]]:
    """Train on random gradients, some of which are missing."""
    model, optimizer = built(plan, config)
    torch.manual_seed(1)
    for _ in range(2):
        for index, parameter in enumerate(model.parameters()):
            if parameter.requires_grad and index % 5 < 4:
                parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    return optimizer, copy.deepcopy(optimizer_state_dict(optimizer))


def by_class(optimizer: Optimizer) -> dict[str, tuple[type, Any]]:
    """Return the class of each name, and the bits of what it keeps."""
    found = {}
    for each in getattr(optimizer, "optimizers", [optimizer]):
        kept = kept_for(each)
        for group in each.param_groups:
            for name in group["param_names"]:
                found[name] = (type(each), kept.get(name))
    return found


@unhurried
@given(regroupings())
def test_each_name_keeps_its_state_whatever_the_groups(drawn: Regrouping) -> None:
    plan, before, after = drawn
    first, saved = saved_run(plan, before)
    untouched = bits(saved)
    model, resumed = built(plan, after)
    own = values_of(resumed, *KEYS[:2])
    report = load_optimizer_state_dict(resumed, saved, missing="fresh")
    assert values_of(resumed, *KEYS[:2]) == own
    theirs, ours = by_class(first), by_class(resumed)
    for name, (cls, kept) in ours.items():
        saved_cls, saved_kept = theirs.get(name, (None, None))
        assert kept == (saved_kept if saved_cls is cls else None), name
    other = [n for n, (cls, _) in ours.items() if theirs.get(n, (None,))[0] is not cls]
    assert set(report.fresh) >= set(other)
    assert sorted(report.dropped) == sorted(theirs.keys() - ours.keys())
    frozen = {n for n, p in model.named_parameters() if not p.requires_grad}
    assert set(report.dropped) <= frozen

    restored = bits_of(resumed)
    load_optimizer_state_dict(resumed, saved, missing="fresh")
    assert bits_of(resumed) == restored
    again = optimizer_state_dict(resumed)
    for entry in again.keys() & saved.keys():
        if entry.startswith("state."):
            assert bits(again[entry]) == bits(saved[entry]), entry
    assert bits(saved) == untouched


@unhurried
@given(regroupings())
def test_the_saved_values_are_taken_over_or_refused(drawn: Regrouping) -> None:
    plan, before, after = drawn
    first, saved = saved_run(plan, before)
    _, resumed = built(plan, {**after, "on_resume": "checkpoint"})
    unchanged = bits_of(resumed)
    try:
        load_optimizer_state_dict(resumed, saved)
    except StateError:
        assert bits_of(resumed) == unchanged
        return
    theirs = values_of(first, *KEYS)
    for name, values in values_of(resumed, *KEYS).items():
        assert values == theirs[name], name
