"""Rates and settings that no argument names, in a run that goes on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim import lr_scheduler as schedulers
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from optim_hydra.written_keys import written_keys
from saved_training import layers, train, trained

Made = Callable[[Optimizer], LRScheduler]
SCHEDULES: dict[str, Made] = {
    "exponential": lambda o: schedulers.ExponentialLR(o, 0.5),
    "step": lambda o: schedulers.StepLR(o, 2, 0.1),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, 8),
    "lambda": lambda o: schedulers.LambdaLR(o, lambda step: 1 / (1 + step)),
}


def rates(optimizer: Optimizer, scheduler: LRScheduler, num_steps: int) -> list[float]:
    found = []
    for _ in range(num_steps):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("policy", ["config", "checkpoint", "strict"])
@pytest.mark.parametrize("kind", list(SCHEDULES))
def test_a_schedule_of_torch_beside_the_optimizer_goes_on(
    kind: str, policy: str
) -> None:
    """Some make each rate from the one before, which has to be there."""
    module = layers()
    optimizer = build_optimizer(module, {"lr": 0.1})
    scheduler = SCHEDULES[kind](optimizer)
    rates(optimizer, scheduler, 3)
    saved = copy.deepcopy(optimizer_state_dict(optimizer))
    saved_scheduler = scheduler.state_dict()
    whole = rates(optimizer, scheduler, 4)

    resumed = build_optimizer(module, {"lr": 0.1, "on_resume": policy})
    again = SCHEDULES[kind](resumed)
    assert load_optimizer_state_dict(resumed, saved).differences == []
    again.load_state_dict(saved_scheduler)
    assert rates(resumed, again, 4) == pytest.approx(whole, rel=1e-12)


def test_another_rate_goes_on_in_proportion() -> None:
    module = layers()
    optimizer = build_optimizer(module, {"lr": 0.1})
    scheduler = schedulers.ExponentialLR(optimizer, 0.5)
    rates(optimizer, scheduler, 3)
    saved = copy.deepcopy(optimizer_state_dict(optimizer))
    resumed = build_optimizer(module, {"lr": 0.4})
    again = schedulers.ExponentialLR(resumed, 0.5)
    (difference,) = load_optimizer_state_dict(resumed, saved).differences
    assert difference.key == "lr"
    assert (difference.saved, difference.current) == (0.1, 0.4)
    again.load_state_dict(scheduler.state_dict())
    assert rates(resumed, again, 2) == pytest.approx([0.05, 0.025])


def test_two_groups_that_share_a_rate_part_where_they_were_saved_apart() -> None:
    module = layers()
    rules = [{"pattern": "0.*", "lr": 0.1}]
    saved = optimizer_state_dict(trained(module, {"lr": 0.2, "param_groups": rules}))
    resumed = build_optimizer(
        module, {"lr": 0.3, "param_groups": [{"pattern": "0.*", "weight_decay": 0.0}]}
    )
    shared = torch.tensor(0.3)
    for group in resumed.param_groups:
        group["lr"] = shared
    load_optimizer_state_dict(resumed, saved, on_resume="checkpoint")
    lrs = sorted(float(group["lr"]) for group in resumed.param_groups)
    assert lrs == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize(
    ("node", "other", "key", "old", "new"),
    [
        (
            {"optimizer_impl": "bitsandbytes.optim", "optimizer": "RMSprop"},
            {"override_optimizer_config": {"alpha": 0.5}},
            "betas",
            (0.99, 0),
            (0.5, 0),
        ),
        (
            {"optimizer_impl": "pytorch_optimizer", "optimizer": "VSGD"},
            {"override_optimizer_config": {"ps": 0.5}},
            "pbhg2",
            None,
            None,
        ),
    ],
    ids=["bitsandbytes", "pytorch_optimizer"],
)
def test_what_a_class_makes_of_an_argument_is_this_runs(
    node: dict[str, Any], other: dict[str, Any], key: str, old: Any, new: Any
) -> None:
    module = nn.Linear(4, 3)
    optimizer = build_optimizer(module, node)
    train(module, optimizer, range(2))
    saved = optimizer_state_dict(optimizer)
    resumed = build_optimizer(module, {**node, **other})
    (group,) = resumed.param_groups
    before = group[key]
    assert before != optimizer.param_groups[0][key]
    report = load_optimizer_state_dict(resumed, saved)
    assert group[key] == before
    found = {d.key: (d.saved, d.current) for d in report.differences}
    assert key in found
    if old is not None:
        assert found[key] == (old, new)
    with pytest.raises(StateError, match=key):
        load_optimizer_state_dict(resumed, saved, on_resume="strict")


@pytest.mark.parametrize(
    ("node", "is_trained"),
    [
        ({"optimizer": "Adagrad", "initial_accumulator_value": 0.5}, False),
        ({"optimizer": "Adagrad", "initial_accumulator_value": 0.5}, True),
        ({"optimizer_impl": "pytorch_optimizer", "optimizer": "SaRA"}, False),
        ({}, False),
        ({}, True),
    ],
    ids=["Adagrad", "Adagrad trained", "SaRA", "AdamW", "AdamW trained"],
)
def test_a_new_layer_starts_with_what_its_class_makes_for_it(
    node: dict[str, Any], is_trained: bool
) -> None:
    node = dict(node)
    value = node.pop("initial_accumulator_value", None)
    if value:
        node["override_optimizer_config"] = {"initial_accumulator_value": value}
    module = layers()
    saved = copy.deepcopy(optimizer_state_dict(trained(module, node)))
    left = {k: v for k, v in saved.items() if ".2.weight" not in k}
    resumed = trained(module, node) if is_trained else build_optimizer(module, node)
    numbers = torch.random.get_rng_state()
    report = load_optimizer_state_dict(resumed, left, missing="fresh")
    assert torch.equal(numbers, torch.random.get_rng_state())
    assert report.fresh == ["2.weight"]
    if value:
        assert resumed.state[module[2].weight]["sum"].unique().tolist() == [value]
    train(module, resumed, range(3, 5))


def test_counters_are_told_from_settings_by_what_the_class_writes() -> None:
    prodigy = import_module("prodigyopt").Prodigy
    assert written_keys(prodigy) == {
        "d",
        "d_denom",
        "d_hat",
        "d_max",
        "d_numerator",
        "k",
    }
    assert written_keys(torch.optim.Muon) == frozenset()
    assert written_keys(torch.optim.Adafactor) == frozenset()


def test_a_class_whose_source_is_not_there_keeps_its_counters() -> None:
    names: dict[str, Any] = {}
    code = "class Counting(Base):\n    def step(self): self.param_groups[0]['k'] += 1"
    exec(code, {"Base": torch.optim.SGD, "__name__": "nowhere"}, names)  # noqa: S102
    assert written_keys(names["Counting"]) is None


def test_a_tensor_of_several_numbers_in_a_group_is_restored() -> None:
    module = layers()
    optimizer = trained(module, {})
    optimizer.param_groups[0]["estimate"] = torch.tensor([1.0, 2.0])
    saved = copy.deepcopy(optimizer_state_dict(optimizer))
    resumed = build_optimizer(module, {})
    resumed.param_groups[0]["estimate"] = held = torch.zeros(2)
    assert load_optimizer_state_dict(resumed, saved).differences == []
    assert held.tolist() == [1.0, 2.0]
