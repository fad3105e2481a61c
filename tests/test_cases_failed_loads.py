"""A load that fails changes nothing, as public bug reports met it.

Cases: B82.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import build_optimizer, build_optimizers, optimizer_state_dict
from optim_hydra.saved_state import StateError
from saved_towers import SCHEDULED, all_of, refused, towers, trained_pair
from saved_training import refused_load, trained


@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_sq"])
def test_B82_a_load_that_fails_leaves_both_parts_alone(key: str) -> None:
    _, container = trained_pair(SCHEDULED)
    saved = {**container.state_dict(), f"state.critic.weight.{key}": torch.ones(3, 3)}
    message = refused(build_optimizers(towers(), SCHEDULED), saved)
    assert message == (
        f"{key} of critic.weight was saved with the shape (3, 3), where (2, 4) is due"
    )


def test_B82_kin_a_part_of_another_size_leaves_both_alone() -> None:
    _, container = trained_pair(SCHEDULED)
    wider = {**towers(), "critic": nn.Linear(5, 2)}
    assert refused(build_optimizers(wider, SCHEDULED), container.state_dict()) == (
        "critic.weight has the shape (2, 5), and the saved one (2, 4)"
    )


def test_B82_kin_a_schedule_that_is_refused_leaves_all_alone() -> None:
    _, container = trained_pair(SCHEDULED)
    other = copy.deepcopy(SCHEDULED)
    other["critic"] |= {"total_training_steps": 20, "on_resume": "strict"}
    message = refused(build_optimizers(towers(), other), container.state_dict())
    assert "total_training_steps 10 -> 20" in message


def test_B82_kin_a_schedule_without_its_step_leaves_all_alone() -> None:
    _, container = trained_pair(SCHEDULED)
    saved = {**container.state_dict(), "lr_schedulers.critic.last_epoch": "many"}
    message = refused(build_optimizers(towers(), SCHEDULED), saved)
    assert "last_epoch" in message


@pytest.mark.parametrize("saved", [None, 3, "saved.pt", []], ids=repr)
def test_B82_kin_what_is_no_state_is_said_so(saved: Any) -> None:
    container = build_optimizers(towers(), SCHEDULED)
    before = all_of(container)
    with pytest.raises(StateError, match=f"is of type {type(saved).__name__}"):
        container.load_state_dict(saved)
    assert all_of(container) == before


def test_B82_kin_a_single_optimizer_is_left_alone_too() -> None:
    module = towers()["actor"]
    saved = optimizer_state_dict(trained(module, {}))
    saved["state.bias.exp_avg"] = torch.ones(7)
    message = refused_load(build_optimizer(module, {"lr": 0.5}), saved)
    assert message == (
        "exp_avg of bias was saved with the shape (7,), where (2,) is due"
    )
