"""Settings that torch's own functions take from a checkpoint stay this run's."""

from __future__ import annotations

import contextlib
import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from case_helpers import values_of
from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from saved_training import (
    FORMS,
    bits,
    in_each_form,
    kept_for,
    layers,
    through_file,
    train,
    trained,
)

DECAYED = {"momentum": 0.9}
DECAY_LATER = {"lr": 5e-4, "weight_decay": 0.1, "no_decay": ["1d"]}


@in_each_form
@pytest.mark.parametrize("policy", ["config", "checkpoint"])
def test_how_a_step_is_computed_is_always_this_runs(policy: str, form: str) -> None:
    module = layers()
    fused = {"optimizer": "Adam", "implementation": "fused"}
    saved = FORMS[form](module, trained(module, fused))
    foreach = {"optimizer": "Adam", "implementation": "foreach", "on_resume": policy}
    resumed = build_optimizer(module, foreach)
    (group,) = resumed.param_groups
    before = bits(group)
    report = load_optimizer_state_dict(resumed, saved)
    assert group["foreach"]
    assert bits(group) == before
    assert report.differences == []
    train(module, resumed, [2])


@in_each_form
def test_one_group_becomes_two_without_losing_this_runs_values(form: str) -> None:
    module = layers()
    optimizer = trained(module, {})
    saved = copy.deepcopy(FORMS[form](module, optimizer))
    resumed = build_optimizer(module, DECAY_LATER)
    before = values_of(resumed, "lr", "weight_decay", "betas", "eps", "amsgrad")
    load_optimizer_state_dict(resumed, saved)
    after = values_of(resumed, "lr", "weight_decay", "betas", "eps", "amsgrad")
    assert after == before
    assert after["0.weight"][:2] == (5e-4, 0.1)
    assert after["0.bias"][:2] == (5e-4, 0.0)
    assert kept_for(resumed) == kept_for(optimizer)


@in_each_form
@pytest.mark.parametrize("saved_with", [False, True])
def test_a_value_that_only_one_run_has_in_its_groups_is_no_obstacle(
    saved_with: bool, form: str
) -> None:
    module = layers()
    optimizers = [trained(module, {"lr": 0.1}) for _ in range(2)]
    for group in optimizers[0].param_groups:
        group["initial_lr"] = 0.1
    first, second = optimizers if saved_with else optimizers[::-1]
    load_optimizer_state_dict(second, copy.deepcopy(FORMS[form](module, first)))
    assert ["initial_lr" in g for g in second.param_groups] == [not saved_with]
    assert kept_for(second) == kept_for(first)


def test_momentum_is_not_switched_on_by_a_checkpoint() -> None:
    module = layers()
    momentum = {"optimizer": "SGD", "override_optimizer_config": DECAYED}
    saved = optimizer_state_dict(trained(module, momentum))
    resumed = build_optimizer(module, {"optimizer": "SGD"})
    report = load_optimizer_state_dict(resumed, saved)
    assert resumed.param_groups[0]["momentum"] == 0
    assert [d.key for d in report.differences] == ["momentum"]
    train(module, resumed, [2])


def test_an_option_that_needs_more_state_than_was_saved_is_no_key_error() -> None:
    module = layers()
    saved = optimizer_state_dict(trained(module, {}))
    amsgrad = {"override_optimizer_config": {"amsgrad": True}}
    optimizer = build_optimizer(module, amsgrad)
    with contextlib.suppress(StateError):  # so would this be right
        load_optimizer_state_dict(optimizer, saved)
        train(module, optimizer, [2])


@pytest.mark.parametrize("policy", ["config", "checkpoint"])
@pytest.mark.parametrize("saved_as_tensor", [False, True])
@pytest.mark.parametrize("is_tensor", [False, True])
def test_a_tensor_lr_stays_the_same_tensor_and_a_number_a_number(
    is_tensor: bool, saved_as_tensor: bool, policy: str, tmp_path: Path
) -> None:
    module = layers()
    first = trained(module, {"lr": 0.5, "implementation": "for-loop"})
    if saved_as_tensor:
        first.param_groups[0]["lr"] = torch.tensor(0.5)
    saved = through_file(optimizer_state_dict(first), tmp_path)
    resumed = build_optimizer(module, {"lr": 0.25, "implementation": "for-loop"})
    (group,) = resumed.param_groups
    own: Any = torch.tensor(0.25) if is_tensor else 0.25
    group["lr"] = own
    report = load_optimizer_state_dict(resumed, saved, on_resume=policy)
    assert [str(d).partition(" (")[0] for d in report.differences] == [
        "lr: saved 0.5, now 0.25"
        if policy == "config"
        else "lr: 0.5 as saved, not 0.25"
    ]
    assert float(group["lr"]) == (0.25 if policy == "config" else 0.5)
    assert type(group["lr"]) is (Tensor if is_tensor else float)
    assert (group["lr"] is own) or not is_tensor
    train(module, resumed, [2])


def test_names_are_not_written_once_for_each_name() -> None:
    def size(num_layers: int) -> int:
        module = nn.Sequential(*[nn.Linear(1, 1) for _ in range(num_layers)])
        return len(pickle.dumps(optimizer_state_dict(build_optimizer(module, {}))))

    # Names of one length, so that twice as many take twice as much, and no more.
    assert size(80) - size(60) <= 1.1 * (size(60) - size(40))


def test_names_of_regrouped_parameters_stay_beside_them() -> None:
    module = layers()
    saved = optimizer_state_dict(trained(module, {}))
    resumed = build_optimizer(module, DECAY_LATER)
    load_optimizer_state_dict(resumed, saved)
    names = dict(module.named_parameters())
    for group in resumed.param_groups:
        assert [names[name] for name in group["param_names"]] == group["params"]
