"""Saved state with anything in it: it is loaded whole, or refused and nothing done."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from saved_training import bits_of, kept_for, refused_load, trained

MODULE = nn.Linear(4, 2)
SAVED = optimizer_state_dict(trained(MODULE, {}))
ANYTHING: list[Any] = [
    None,
    3,
    "text",
    b"bytes",
    [],
    {},
    {"a": 1},
    float("nan"),
    torch.ones(()),
    torch.ones(7),
    torch.ones(2, 4, dtype=torch.int64),
    object(),
]
BROKEN_GROUPS: list[Any] = [
    [3],
    [None],
    ["text"],
    [{}],
    [{"params": 3}],
    [{"params": [0, 1], "param_names": 3}],
    [{"params": [[], {}]}],
]


def apply(changes: list[tuple[str, Any]]) -> dict[str, Any]:
    saved = copy.copy(SAVED)
    for key, value in changes:
        if value is ANYTHING:
            saved.pop(key, None)
        else:
            saved[key] = value
    return saved


# ANYTHING itself stands for taking the entry away.
CHANGES = st.tuples(
    st.sampled_from([*SAVED, "state.weight", "state.", "param_groups.", "state.x.y"]),
    st.sampled_from([*ANYTHING, ANYTHING]),
)


@settings(deadline=None, max_examples=300)
@example([("optim_hydra.weight", "text")], "error")
@given(st.lists(CHANGES, min_size=1, max_size=3), st.sampled_from(["error", "fresh"]))
def test_a_flat_state_with_anything_in_it_is_loaded_or_refused(
    changes: list[tuple[str, Any]], missing: Any
) -> None:
    optimizer = build_optimizer(copy.deepcopy(MODULE), {"lr": 0.5})
    saved = apply(changes)
    before = bits_of(optimizer)
    try:
        load_optimizer_state_dict(optimizer, saved, missing=missing)
    except StateError:
        assert bits_of(optimizer) == before
    else:
        assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("groups", BROKEN_GROUPS, ids=repr)
def test_broken_groups_are_refused(groups: Any) -> None:
    optimizer = trained(copy.deepcopy(MODULE), {})
    refused_load(optimizer, {"state": {}, "param_groups": groups})


@pytest.mark.parametrize("state", [{0: 3}, {0: "text"}, {0: [1]}], ids=repr)
def test_broken_states_are_refused(state: Any) -> None:
    optimizer = trained(copy.deepcopy(MODULE), {})
    groups = [{"params": [0, 1], "param_names": ["weight", "bias"], "lr": 0.1}]
    refused_load(optimizer, {"state": state, "param_groups": groups})


@pytest.mark.parametrize(
    "identity",
    [
        "text",
        "[]",
        "3",
        "null",
        "",
        '{"parameters": 3}',
        '{"parameters": {"weight": 3}}',
    ],
)
def test_a_broken_identity_is_refused(identity: str) -> None:
    optimizer = trained(copy.deepcopy(MODULE), {})
    refused_load(optimizer, {**SAVED, "optim_hydra.weight": identity})


@pytest.mark.parametrize("key", ["lr", "betas"])
@pytest.mark.parametrize("value", ["text", None, {}], ids=repr)
def test_broken_settings_are_not_taken_over(key: str, value: Any) -> None:
    optimizer = trained(copy.deepcopy(MODULE), {"on_resume": "checkpoint"})
    entries = {f"param_groups.{name}.{key}": value for name in ("weight", "bias")}
    assert key in refused_load(optimizer, {**SAVED, **entries})


def test_what_is_left_alone_still_loads() -> None:
    optimizer = build_optimizer(copy.deepcopy(MODULE), {})
    known = json.loads(SAVED["optim_hydra.weight"])
    saved = {**SAVED, "optim_hydra.weight": json.dumps(known, indent=2)}
    load_optimizer_state_dict(optimizer, saved)
    assert kept_for(optimizer).keys() == {"weight", "bias"}
