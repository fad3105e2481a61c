"""What a checkpoint's settings may be, and what is said of those that may not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ExponentialLR

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.state_placement import placed
from optim_hydra.state_slots import slots_of
from saved_training import FORMS, bits, in_each_form, refused_load, trained

ON_META = ": load the file with map_location='cpu'"
SCHEDULE_FREE = {"optimizer_impl": "schedulefree", "optimizer": "AdamWScheduleFree"}
SAID = [
    ("lr", -1.0, "can't be taken: -1.0 is not a finite float >= 0"),
    ("lr", float("inf"), "can't be taken: inf is not a finite float >= 0"),
    ("lr", float("nan"), "can't be taken: nan is not a finite float >= 0"),
    ("weight_decay", -1.0, "can't be taken: -1.0 is not a finite float >= 0"),
    ("maximize", "no", "is 'no', unlike False"),
    ("amsgrad", "x", "is 'x', unlike False"),
    ("amsgrad", 1, "is 1, unlike False"),
]


def with_setting(saved: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(saved)
    for group in changed.get("param_groups", []):
        group[key] = value
    ends = f".{key}"
    return {k: value if k.endswith(ends) else v for k, v in changed.items()}


@in_each_form
@pytest.mark.parametrize(("key", "value", "said"), SAID)
def test_a_saved_setting_is_checked_before_it_is_taken(
    key: str, value: Any, said: str, form: str, module: nn.Module
) -> None:
    saved = with_setting(FORMS[form](module, trained(module, {})), key, value)
    resumed = trained(copy.deepcopy(module), {"lr": 0.5}, 1)
    message = refused_load(resumed, saved, on_resume="checkpoint")
    assert message == f"the saved {key} of weight {said}"


def test_a_saved_pair_is_checked_item_by_item(module: nn.Module) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    changed = with_setting(saved, "betas", (0.9, 3.0))
    resumed = trained(copy.deepcopy(module), {}, 1)
    assert refused_load(resumed, changed, on_resume="checkpoint") == (
        "the saved betas[1] of weight can't be taken: 3.0 is not a float in [0, 1)"
    )
    changed = with_setting(saved, "betas", [0.8, 0.99])
    load_optimizer_state_dict(resumed, changed, on_resume="checkpoint")
    assert resumed.param_groups[0]["betas"] == (0.8, 0.99)


@in_each_form
def test_settings_without_values_are_refused(form: str, module: nn.Module) -> None:
    saved = FORMS[form](module, trained(module, {}))
    changed = with_setting(saved, "lr", torch.ones((), device="meta"))
    message = refused_load(build_optimizer(copy.deepcopy(module), {}), changed)
    told = [
        f"lr of {name} has no values, it is on the meta device{ON_META}"
        for name in ("weight", "bias")
    ]
    is_one = form in ("torch", "nested")  # one for the group
    assert message == (told[0] if is_one else "\n  - ".join(["2 problems:", *told]))


@pytest.mark.parametrize("policy", ["config", "strict"])
def test_nan_is_one_value(policy: Any, module: nn.Module) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    changed = with_setting(saved, "weight_decay", float("nan"))
    resumed = build_optimizer(copy.deepcopy(module), {})
    if policy == "config":
        report = load_optimizer_state_dict(resumed, changed)
        assert [str(each) for each in report.differences] == [
            "weight_decay: saved nan, now 0.01 (weight, bias)"
        ]
    else:
        assert refused_load(resumed, changed, on_resume=policy).startswith(
            "2 problems:\n  - weight_decay: saved nan, now 0.01 (weight, bias)\n"
        )


def test_counters_that_differ_are_no_matter_of_the_policy() -> None:
    rule = {"pattern": "bias", "lr": 0.01}
    optimizer = build_optimizer(
        nn.Linear(4, 2), {**SCHEDULE_FREE, "lr": 0.1, "param_groups": [rule]}
    )
    optimizer.param_groups[0]["k"] = 7
    saved = optimizer_state_dict(optimizer)
    merged = build_optimizer(nn.Linear(4, 2), {**SCHEDULE_FREE, "lr": 0.1})
    assert refused_load(merged, saved) == (
        "k was saved with several values for the parameters of one group"
        " (weight, bias, ...): group them as they were"
    )


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_rate_in_a_tensor_goes_on_where_its_schedule_was(
    shape: tuple[int, ...],
) -> None:
    def made() -> tuple[torch.optim.Optimizer, ExponentialLR]:
        named = list(nn.Linear(4, 2).named_parameters())
        lr = torch.full(shape, 1e-3)
        optimizer = torch.optim.AdamW(named, lr=lr, foreach=False)
        return optimizer, ExponentialLR(optimizer, 0.5)

    first, schedule = made()
    first.step()
    schedule.step()
    saved = copy.deepcopy(optimizer_state_dict(first)), schedule.state_dict()
    resumed, other = made()
    load_optimizer_state_dict(resumed, saved[0])
    other.load_state_dict(saved[1])
    for each in (schedule, other):
        each.optimizer.step()
        each.step()
    rates = [each.param_groups[0]["lr"] for each in (first, resumed)]
    assert bits(rates[1]) == bits(rates[0]) == bits(torch.full(shape, 1e-3) * 0.25)


@pytest.mark.parametrize("key", ["lr", "initial_lr"])
def test_a_rate_that_no_schedule_makes_is_refused(key: str, module: nn.Module) -> None:
    optimizer = trained(module, {"lr": 0.5})
    ExponentialLR(optimizer, 0.5)
    rates = {"lr": 0.5, "initial_lr": 0.5}
    saved = with_setting(optimizer_state_dict(optimizer), key, float("inf"))
    rates[key] = float("inf")
    assert refused_load(optimizer, saved) == (
        f"the saved lr of weight is {rates['lr']}, and began with {rates['initial_lr']}"
    )


def test_an_identity_that_is_nested_without_end_is_refused(module: nn.Module) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    saved["optim_hydra.weight"] = "[" * 100_000
    with pytest.raises(RecursionError):
        json.loads(saved["optim_hydra.weight"])
    assert refused_load(build_optimizer(module, {}), saved) == (
        "this is no saved optimizer state (its entry optim_hydra.weight can't be read:"
        " it is nested too deeply): give what optimizer_state_dict(optimizer),"
        " optimizer.state_dict() or torch.distributed.checkpoint made"
    )


@pytest.mark.parametrize("capturable", [False, True])
def test_a_number_follows_its_parameter_and_a_counter_does_not(
    capturable: bool,
) -> None:
    scale = nn.Parameter(torch.ones((), device="meta"))
    (slot,) = slots_of(torch.optim.AdamW([("scale", scale)]))
    slot.group["capturable"] = capturable
    number = torch.ones(())

    def device(key: str) -> str:
        moved: Tensor = placed(number, key, slot)
        return moved.device.type

    assert device("exp_avg") == "meta"
    assert device("step") == ("meta" if capturable else "cpu")
