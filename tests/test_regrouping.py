"""A resumed run may group its parameters in another way than the saved one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from case_helpers import values_of
from group_models import VOCABULARY, gpt
from optim_hydra import (
    OptimizersContainer,
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import assert_same, kept_for, refused_load

BASE = {"lr": 1e-3, "weight_decay": 0.1}
NO_DECAY = {**BASE, "no_decay": ["bias", "norm"]}
LAYER_DECAY = {**BASE, "layer_decay": {"factor": 0.5}}
MUON = {**BASE, "param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}
FIRST = {"pattern": "blocks.0.*", "freeze": True}


def step(model: nn.Module, optimizer: Optimizer, num_steps: int = 2) -> None:
    tokens = torch.arange(12).reshape(2, 6) % VOCABULARY
    for _ in range(num_steps):
        optimizer.zero_grad()
        logits = model(tokens).flatten(0, 1)
        nn.functional.cross_entropy(logits, tokens.flip(1).flatten()).backward()
        optimizer.step()


def trained(config: dict[str, Any]) -> Optimizer:
    model = gpt()
    optimizer = build_optimizer(model, config)
    step(model, optimizer)
    return optimizer


def state_of(optimizer: Optimizer) -> dict[str, Any]:
    inner = getattr(optimizer, "optimizers", [optimizer])
    return {name: kept for each in inner for name, kept in kept_for(each).items()}


def settings(optimizer: Optimizer) -> dict[str, Any]:
    return values_of(optimizer, "lr", "weight_decay")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BASE, NO_DECAY),
        (NO_DECAY, BASE),
        (BASE, LAYER_DECAY),
        (LAYER_DECAY, NO_DECAY),
        (NO_DECAY, {**NO_DECAY, **LAYER_DECAY}),
    ],
    ids=["1 -> 2", "2 -> 1", "layers", "layers -> 2", "2 -> 2 x layers"],
)
def test_groups_of_one_class_may_be_split_and_merged(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    first = trained(before)
    saved = copy.deepcopy(optimizer_state_dict(first))
    model = gpt()
    resumed = build_optimizer(model, after)
    own = settings(resumed)
    report = load_optimizer_state_dict(resumed, saved)
    assert_same(state_of(resumed), state_of(first))
    assert settings(resumed) == own
    told = {(d.key, n) for d in report.differences for n in d.names}
    theirs = settings(first)
    assert told == {
        (key, name)
        for name, values in own.items()
        for key, mine, saved_one in zip(
            ("lr", "weight_decay"), values, theirs[name], strict=True
        )
        if mine != saved_one
    }
    step(model, resumed)


def test_the_saved_values_of_groups_that_were_merged_are_refused() -> None:
    saved = optimizer_state_dict(trained(NO_DECAY))
    config = {**BASE, "on_resume": "checkpoint"}
    assert refused_load(build_optimizer(gpt(), config), saved) == (
        "weight_decay was saved with several values for the parameters of one group"
        " (token_embedding.weight, position_embedding.weight, blocks.0.ln_1.weight,"
        " ...): group them as they were, or use on_resume: config"
    )


def test_the_saved_values_of_a_group_that_was_split_go_to_both_parts() -> None:
    first = trained({"lr": 5e-4, "weight_decay": 0.2})
    saved = optimizer_state_dict(first)
    resumed = build_optimizer(gpt(), {**NO_DECAY, "on_resume": "checkpoint"})
    load_optimizer_state_dict(resumed, saved)
    assert settings(resumed) == settings(first)


def test_muon_for_some_parameters_starts_afresh_on_purpose() -> None:
    first = trained(NO_DECAY)
    saved = copy.deepcopy(optimizer_state_dict(first))
    model = gpt()
    resumed = build_optimizer(model, MUON)
    assert isinstance(resumed, OptimizersContainer)
    message = refused_load(resumed, saved)
    assert message.splitlines()[1] == (
        "  - blocks.0.attention.qkv.weight was trained with torch.optim.adamw.AdamW,"
        " and now with torch.optim.Muon"
    )
    report = load_optimizer_state_dict(resumed, saved, missing="fresh")
    (muon,) = resumed["Muon"].param_groups
    assert report.fresh == muon["param_names"]
    assert not resumed["Muon"].state
    kept = state_of(resumed)
    assert_same(kept, {name: state_of(first)[name] for name in kept})
    assert kept.keys() | set(report.fresh) == dict(model.named_parameters()).keys()
    step(model, resumed)
    assert {int(s["step"]) for s in resumed["AdamW"].state.values()} == {4}


def test_muon_is_taken_back_on_purpose() -> None:
    first = trained(MUON)
    model = gpt()
    resumed = build_optimizer(model, BASE)
    report = load_optimizer_state_dict(
        resumed, optimizer_state_dict(first), missing="fresh"
    )
    assert_same(state_of(resumed), kept_for(first["AdamW"]))
    assert report.num_restored == len(kept_for(first["AdamW"]))
    step(model, resumed)


def test_a_part_that_was_frozen_since_is_left_out() -> None:
    first = trained(BASE)
    model = gpt()
    resumed = build_optimizer(model, {**NO_DECAY, "param_groups": [FIRST]})
    report = load_optimizer_state_dict(resumed, optimizer_state_dict(first))
    kept = state_of(resumed)
    assert_same(kept, {n: v for n, v in state_of(first).items() if "blocks.0" not in n})
    assert all(name.startswith("blocks.0.") for name in report.dropped)
    assert len(report.dropped) + len(kept) == len(list(model.parameters()))
    step(model, resumed)


def test_a_part_that_was_unfrozen_since_starts_afresh_on_purpose() -> None:
    first = trained({**BASE, "param_groups": [FIRST]})
    saved = optimizer_state_dict(first)
    model = gpt()
    resumed = build_optimizer(model, NO_DECAY)
    assert "the saved state has nothing for blocks.0." in refused_load(resumed, saved)
    report = load_optimizer_state_dict(resumed, saved, missing="fresh")
    assert_same(state_of(resumed), state_of(first))
    assert all(name.startswith("blocks.0.") for name in report.fresh)
    assert len(report.fresh) + report.num_restored == len(list(model.parameters()))
    step(model, resumed)


def test_a_second_load_takes_back_what_was_trained_between() -> None:
    saved = copy.deepcopy(optimizer_state_dict(trained(BASE)))
    model = gpt()
    resumed = build_optimizer(model, NO_DECAY)
    load_optimizer_state_dict(resumed, saved)
    before = state_of(resumed)
    step(model, resumed)
    assert state_of(resumed) != before
    load_optimizer_state_dict(resumed, saved)
    assert_same(state_of(resumed), before)


def test_a_failed_load_can_be_followed_by_a_right_one() -> None:
    saved = copy.deepcopy(optimizer_state_dict(trained(BASE)))
    resumed = build_optimizer(gpt(), NO_DECAY)
    message = refused_load(resumed, saved, on_resume="strict")
    assert message.startswith(
        "2 problems:\n  - weight_decay: saved 0.1, now 0.0 (blocks.0.ln_1.weight,"
    )
    load_optimizer_state_dict(resumed, saved)
    assert state_of(resumed)
