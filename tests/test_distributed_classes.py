"""Training goes on bit for bit on two processes after a checkpoint, with each class."""

from __future__ import annotations

from typing import Any

import pytest

# How many tensors and counters each keeps for three layers with weights and biases.
TORCH = {
    "ASGD": 24,
    "Adadelta": 18,
    "Adagrad": 12,
    "Adam": 18,
    "AdamW": 18,
    "Adamax": 18,
    "Muon": 3,  # has no biases here
    "NAdam": 24,
    "RAdam": 18,
    "RMSprop": 12,
    "SGD": 0,
}
REFUSED_BY_TORCH = {
    "Adafactor": "aten.pow_.Scalar: in-place operations that require placement changes"
    " are not supported.",
    "Rprop": "aten.index_put_.default: in-place operations that require placement"
    " changes are not supported.",
}
QUANTISED = {
    "_AdamW": ["Tensor"],
    "AdamW8bit": ["OptimState8bit", "Tensor"],
    "AdamW4bit": ["OptimState4bit", "Tensor"],
    "AdamWFp8": ["OptimStateFp8", "Tensor"],
}
TOGETHER = {
    "momentum": 6,
    "muon_and_adamw": 14,
    "muon_and_adamw_stateful": 14,
    "actor_and_critic": 20,
}


def assert_went_on(results: dict[str, Any], num_kept: int) -> None:
    assert results["differing"] == []
    assert results["stood_still"] == []
    assert results["num_kept"] == num_kept


@pytest.fixture
def ran(found_in):
    """Return what both processes have found, by the name of a scenario."""
    return lambda scenario: found_in("resuming_classes", 2, scenario)


def test_each_class_of_torch_is_tried(ran) -> None:
    for results in ran("torch.optim"):
        assert results.keys() == {*TORCH, *REFUSED_BY_TORCH, "LBFGS"}


@pytest.mark.parametrize("name", TORCH)
def test_a_class_of_torch_goes_on(name: str, ran) -> None:
    for results in ran("torch.optim"):
        assert_went_on(results[name], TORCH[name])


@pytest.mark.parametrize("name", REFUSED_BY_TORCH)
def test_torch_itself_steps_no_shards_with_some_classes(name: str, ran) -> None:
    for results in ran("torch.optim"):
        assert results[name]["told"].startswith(REFUSED_BY_TORCH[name])


def test_what_lbfgs_keeps_has_no_templates_and_is_missed_by_name(ran) -> None:
    for results in ran("torch.optim"):
        assert results["LBFGS"] == {
            "told": "the saved state of 0.weight lacks H_diag, al, d, func_evals,"
            " n_iter, old_dirs, old_stps, prev_flat_grad, prev_loss, ro, t"
        }


@pytest.mark.parametrize("name", QUANTISED)
def test_sharded_state_of_few_bits_goes_on(name: str, ran) -> None:
    for results in ran("torchao.optim"):
        assert_went_on(results[name], 18)
        assert results[name]["kinds"] == QUANTISED[name]


def test_a_schedule_free_class_goes_on(ran) -> None:
    for results in ran("schedulefree"):
        assert_went_on(results["AdamWScheduleFree"], 12)


@pytest.mark.parametrize("scenario", TOGETHER)
def test_classes_and_modules_go_on_together(scenario: str, ran) -> None:
    for results in ran(scenario):
        assert_went_on(results, TOGETHER[scenario])
