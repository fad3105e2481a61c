"""Saved state that does not fit: the whole sentence, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from optim_hydra import build_optimizer, optimizer_state_dict
from optim_hydra.saved_state import StateError
from saved_training import FORMS, in_each_form, refused_load, trained

State = dict[str, Any]
FRESH = "\n  - to start these without state: missing='fresh'"


class Row(NamedTuple):
    """What is done to the state of a linear layer, and what is said about it."""

    name: str
    change: Callable[[State], State]
    message: str


def without(*starts: str) -> Callable[[State], State]:
    return lambda saved: {k: v for k, v in saved.items() if not k.startswith(starts)}


def renamed(old: str, new: str) -> Callable[[State], State]:
    def change(saved: State) -> State:
        renamed = {k.replace(f".{old}.", f".{new}."): v for k, v in saved.items()}
        renamed[f"optim_hydra.{new}"] = renamed.pop(f"optim_hydra.{old}")
        return renamed

    return change


def putting(**entries: Any) -> Callable[[State], State]:
    named = {key.replace("__", "."): value for key, value in entries.items()}
    return lambda saved: {**saved, **named}


ROWS = [
    Row(
        "a parameter was renamed",
        renamed("weight", "wieght"),
        "3 problems:\n"
        "  - the saved state has wieght, the optimizer has not: did you mean weight?\n"
        "  - the saved state has nothing for weight" + FRESH,
    ),
    Row(
        "a parameter is gone",
        renamed("weight", "embedding.table"),
        "4 problems:\n"
        "  - the saved state has embedding.table, the optimizer has not\n"
        "  - to leave removed layers out, leave their entries out of what is loaded, as"
        " in {k: v for k, v in saved.items() if '.embedding.table' not in k}\n"
        "  - the saved state has nothing for weight" + FRESH,
    ),
    Row(
        "a tensor is of another shape",
        putting(state__weight__exp_avg=torch.ones(2, 5)),
        "exp_avg of weight was saved with the shape (2, 5), where (2, 4) is due",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_what_does_not_fit_is_said_and_nothing_is_changed(
    row: Row, module: nn.Module
) -> None:
    saved = row.change(optimizer_state_dict(trained(module, {})))
    optimizer = trained(module, {"lr": 0.5}, num_steps=1)
    assert refused_load(optimizer, saved) == row.message


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (putting(state__weight__step=torch.ones(2, 4)), ("step", "weight", "(2, 4)")),
        (without("state.weight.exp_avg_sq"), ("exp_avg_sq", "weight")),
        (without("state.weight."), ("weight",)),
        (putting(state__stranger__step=torch.ones(())), ("stranger",)),
        (putting(param_groups__stranger__lr=0.1), ("stranger",)),
    ],
    ids=["a counter is a matrix", "no moment", "no state", "state", "settings"],
)
def test_what_is_missing_or_strange_is_named(
    change: Callable[[State], State], told: tuple[str, ...], module: nn.Module
) -> None:
    saved = change(optimizer_state_dict(trained(module, {})))
    message = refused_load(trained(module, {"lr": 0.5}, num_steps=1), saved)
    assert all(word in message for word in told)


def test_every_problem_comes_at_once(module: nn.Module) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    wider = build_optimizer(nn.ModuleDict({"a": nn.Linear(5, 2)}), {"lr": 0.5})
    entries = {k.replace(".weight", ".a.weight"): v for k, v in saved.items()}
    message = refused_load(wider, entries, on_resume="strict")
    assert message == (
        "7 problems:\n"
        "  - the saved state has bias, the optimizer has not: did you mean a.bias?\n"
        "  - this optimizer's names begin with 'a.' and the others don't: build the"
        " optimizer of the module that was saved, without or with that wrapper\n"
        "  - a.weight has the shape (2, 5), and the saved one (2, 4)\n"
        "  - the saved state has nothing for a.bias\n"
        "  - to start these without state: missing='fresh'\n"
        "  - lr: saved 0.001, now 0.5 (a.weight)\n"
        "  - on_resume is strict: config keeps this run's settings, checkpoint takes"
        " the saved"
    )


def test_of_many_names_the_first_ones_are_listed() -> None:
    model = nn.Sequential(*[nn.Linear(2, 2, bias=False) for _ in range(8)])
    saved = optimizer_state_dict(build_optimizer(model, {}))
    other = nn.ModuleDict({f"q{i}": nn.Linear(2, 2, bias=False) for i in range(7)})
    message = refused_load(build_optimizer(other, {}), saved).splitlines()
    assert message[0] == "14 problems:"
    assert message[6] == "  - and 3 more of these"
    assert message[13] == "  - and 2 more of these"
    assert message[14] == "  - to start these without state: missing='fresh'"


@in_each_form
def test_another_shape_is_refused_whoever_saved(form: str, module: nn.Module) -> None:
    saved = FORMS[form](module, trained(module, {}))
    message = refused_load(build_optimizer(nn.Linear(5, 2), {}), saved)
    assert message == (
        "weight has the shape (2, 5), and the saved one (2, 4)"
        if form == "ours"
        else "exp_avg of weight was saved with the shape (2, 4), where (2, 5) is due"
    )


def test_state_of_another_number_of_parameters_has_no_names_to_go_by(
    module: nn.Module,
) -> None:
    plain = torch.optim.AdamW([module.weight])
    assert refused_load(build_optimizer(module, {}), plain.state_dict()) == (
        "the saved state has no names and 1 parameters, the optimizer has 2: they"
        " can't be matched; build the optimizer of the module that was saved, load it"
        " there, and save it by optimizer_state_dict, whose entries have names"
    )


@pytest.mark.parametrize("is_saved", [True, False], ids=["saved", "now"])
def test_a_wrapper_around_all_names_is_told(is_saved: bool) -> None:
    """A part of what was saved is found by itself, but not when it was trained more."""
    plain = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    wrapped = nn.ModuleDict({"net": plain})
    first, second = (wrapped, plain) if is_saved else (plain, wrapped)
    saved = optimizer_state_dict(build_optimizer(first, {}))
    if is_saved:
        saved = {k: v for k, v in saved.items() if ".net.0.bias" not in k}
    message = refused_load(build_optimizer(second, {}), saved)
    whose = "the saved names begin" if is_saved else "this optimizer's names begin"
    assert (
        f"{whose} with 'net.' and the others don't: build the optimizer of the module"
        " that was saved, without or with that wrapper" in message
    )


def test_state_by_name_is_refused_where_torch_loads_by_order(module: nn.Module) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    optimizer = build_optimizer(module, {"lr": 0.5})
    with pytest.raises(StateError) as caught:
        optimizer.load_state_dict(saved)
    assert str(caught.value) == (
        "this is state by parameter name, which optimizer.load_state_dict does not"
        " read: write optim_hydra.load_optimizer_state_dict(optimizer, ...)"
    )
    assert optimizer.param_groups[0]["lr"] == 0.5
    optimizer.load_state_dict(optimizer.state_dict())
