"""A load that is given something else than saved state and known words."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import load_optimizer_state_dict, optimizer_state_dict
from optim_hydra.errors import ConfigError, WrongObjectError
from optim_hydra.saved_state import StateError
from saved_training import bits_of, refused_load, trained

NO_STATE = (
    "this is no saved optimizer state ({}): give what optimizer_state_dict(optimizer),"
    " optimizer.state_dict() or torch.distributed.checkpoint made"
)


@pytest.mark.parametrize(
    ("saved", "why"),
    [
        (None, "it is of type NoneType"),
        (3, "it is of type int"),
        ("optimizer.pt", "it is of type str"),
        ([("weight", 1)], "it is of type list"),
        (torch.ones(2), "it is of type Tensor"),
        ({}, "it has no keys"),
        ({"model": {}, "epoch": 3}, "it has model, epoch"),
        ({"optimizer": {"state": {}, "param_groups": []}}, "it has optimizer"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "it has a, b, c"),
        ({1: 2}, "it has 1"),
        ({"state": 3, "param_groups": []}, "it has state, param_groups"),
        (nn.Linear(4, 2).state_dict(), "it has weight, bias"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_state_is_said_so(saved: Any, why: str, module: nn.Module) -> None:
    optimizer = trained(module, {})
    assert refused_load(optimizer, saved) == NO_STATE.format(why)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"on_resume": "checkpiont"},
            "on_resume='checkpiont' is not one of config, checkpoint, strict",
        ),
        ({"missing": "skip"}, "missing='skip' is not one of error, fresh"),
        ({"missing": None}, "missing=None is not one of error, fresh"),
    ],
    ids=["on_resume", "missing", "null"],
)
def test_a_wrong_word_is_said_so(
    given: dict[str, Any], message: str, module: nn.Module
) -> None:
    optimizer = trained(module, {})
    before = bits_of(optimizer)
    with pytest.raises(WrongObjectError) as caught:
        load_optimizer_state_dict(optimizer, optimizer_state_dict(optimizer), **given)
    assert str(caught.value) == message
    assert bits_of(optimizer) == before


def test_swapped_arguments_are_said_so(module: nn.Module) -> None:
    optimizer = trained(module, {})
    saved: Any = optimizer_state_dict(optimizer)
    with pytest.raises(WrongObjectError) as caught:
        load_optimizer_state_dict(saved, optimizer)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "the first argument is of type dict, not an optimizer: give the optimizer,"
        " then what was saved"
    )
    with pytest.raises(WrongObjectError) as caught:
        optimizer_state_dict(module)  # type: ignore[arg-type]
    assert str(caught.value) == "the argument is of type Linear, not an optimizer"


def test_the_error_is_caught_as_one_of_the_libraries() -> None:
    assert issubclass(StateError, ConfigError)
    assert issubclass(StateError, Exception)
