"""`lr_scheduler_type` as the dotted path of a torch scheduler class."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from optim_hydra import (
    ConfigError,
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.declared import set_allowed_impls
from optim_hydra.errors import OptimHydraWarning, TargetError

TORCH = "torch.optim.lr_scheduler"
ARGUMENTS = "override_lr_scheduler_config"


def node(name: str, arguments: dict[str, Any] | None = None, **further: Any) -> Any:
    path = f"{TORCH}.{name}"
    return {"lr": 0.01, "lr_scheduler_type": path, ARGUMENTS: arguments, **further}


def build(config: Any, total: int | None = None, module: nn.Module | None = None):
    optimizer = build_optimizer(module or nn.Linear(4, 2), config)
    return optimizer, build_lr_scheduler(optimizer, config, total)


def rates(optimizer: torch.optim.Optimizer, scheduler: Any, steps: int) -> list[float]:
    seen = []
    for _ in range(steps):
        seen.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("StepLR", {"step_size": 3, "gamma": 0.5}),
        ("MultiStepLR", {"milestones": [2, 5]}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("LinearLR", {"total_iters": 6}),
        ("ConstantLR", {}),
        ("PolynomialLR", {"total_iters": 10, "power": 2.0}),
        ("CosineAnnealingLR", {"T_max": 12, "eta_min": 1e-4}),
        ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2}),
        ("CyclicLR", {"base_lr": 1e-3, "max_lr": 0.1, "cycle_momentum": False}),
        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 20, "cycle_momentum": False}),
    ],
)
def test_the_rates_are_those_of_the_class(name: str, arguments: dict[str, Any]) -> None:
    other = torch.optim.SGD(nn.Linear(4, 2).parameters(), lr=0.01)
    reference = getattr(lr_scheduler, name)(other, **arguments)
    expected = rates(other, reference, 19)
    found = rates(*build(node(name, arguments), 20), 19)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_warmup_goes_before_the_class() -> None:
    optimizer, scheduler = build(node("StepLR", {"step_size": 2}, lr_warmup_steps=2))
    expected = [0.0, 0.005, 0.01, 0.01, 1e-3, 1e-3, 1e-4]
    assert rates(optimizer, scheduler, 7) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["CosineAnnealingLR", "OneCycleLR"])
def test_the_number_of_steps_after_the_warmup_is_filled_in(name: str) -> None:
    given = {"max_lr": 0.1, "cycle_momentum": False} if name == "OneCycleLR" else {}
    config = node(name, given, lr_warmup_steps_ratio=0.1)
    length = {"OneCycleLR": "total_steps", "CosineAnnealingLR": "T_max"}[name]
    _, scheduler = build(config, 50)
    assert scheduler.schedule.function.arguments == {length: 45, **given}
    with pytest.raises(ConfigError) as caught:
        build(config)
    assert str(caught.value) == (
        f"the schedule {TORCH}.{name} needs the number of steps in all: set it, or pass"
        " it from the trainer @ total_training_steps"
    )


def test_past_its_end_a_class_stays_at_its_last_rate() -> None:
    given = {"max_lr": 0.1, "cycle_momentum": False, "total_steps": 10}
    given["anneal_strategy"] = "linear"
    seen = rates(*build(node("OneCycleLR", given)), 30)
    assert seen[9:] == [pytest.approx(seen[9])] * 21
    assert 0 < seen[9] < 1e-6


def test_groups_keep_their_ratio_where_the_class_knows_a_number() -> None:
    rules = [{"pattern": "*bias", "lr_mult": 0.1}]
    config = node("CosineAnnealingLR", {"eta_min": 1e-3}, param_groups=rules)
    optimizer, scheduler = build(config, 8)
    for _ in range(10):
        first, second = (group["lr"] for group in optimizer.param_groups)
        assert second == pytest.approx(first / 10)
        optimizer.step()
        scheduler.step()
    assert first == pytest.approx(1e-3)


def test_a_rule_has_a_class_of_its_own_at_its_own_rate() -> None:
    rule = {
        "pattern": "*bias",
        "lr": 0.1,
        "lr_scheduler_type": f"{TORCH}.CosineAnnealingLR",
        ARGUMENTS: {"T_max": 4, "eta_min": 0.05},
    }
    config = node("StepLR", {"step_size": 2}, param_groups=[rule])
    optimizer, scheduler = build(config)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    found = [group["lr"] for group in optimizer.param_groups]
    assert found == pytest.approx([1e-4, 0.05])


def test_a_tensor_rate_stays_a_tensor() -> None:
    config = node("StepLR", {"step_size": 1})
    optimizer = build_optimizer(nn.Linear(4, 2), config)
    rate = torch.tensor(0.01)
    optimizer.param_groups[0]["lr"] = rate
    scheduler = build_lr_scheduler(optimizer, config)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert float(rate) == pytest.approx(1e-3)


def test_it_pickles_copies_and_goes_on_from_plain_state() -> None:
    config = node("StepLR", {"step_size": 2})
    optimizer, scheduler = build(config)
    rates(optimizer, scheduler, 3)
    state = scheduler.state_dict()
    assert state[ARGUMENTS] == '{"step_size": 2}'
    for other in (pickle.loads(pickle.dumps(scheduler)), copy.deepcopy(scheduler)):
        assert other.get_last_lr() == pytest.approx([1e-3])
        assert other.schedule.factor(4) == pytest.approx(0.01)
    resumed_optimizer, resumed = build(config)
    resumed.load_state_dict(state)
    assert rates(resumed_optimizer, resumed, 5) == rates(optimizer, scheduler, 5)


@pytest.mark.parametrize(("policy", "rate"), [("config", 1e-3), ("checkpoint", 5e-3)])
def test_a_resumed_run_reports_other_arguments(policy: str, rate: float) -> None:
    optimizer, scheduler = build(node("StepLR", {"step_size": 3, "gamma": 0.5}))
    rates(optimizer, scheduler, 4)
    config = node("StepLR", {"step_size": 3}, on_resume=policy)
    other, resumed = build(config)
    with pytest.warns(OptimHydraWarning, match='{"step_size": 3, "gamma": 0.5} ->'):
        resumed.load_state_dict(scheduler.state_dict())
    assert other.param_groups[0]["lr"] == pytest.approx(rate)


def test_saved_state_imports_nothing() -> None:
    config = node("StepLR", {"step_size": 3}, on_resume="checkpoint")
    _, scheduler = build(config)
    state = scheduler.state_dict() | {"lr_scheduler_type": "this.Scheduler"}
    with pytest.raises(ConfigError) as caught:
        scheduler.load_state_dict(state)
    assert str(caught.value) == (
        "the saved schedule can't be used: the saved schedule 'this.Scheduler' is no"
        " scheduler of a module in use here"
    )


def test_a_container_advances_and_restores_it() -> None:
    def built():
        parts = {"actor": nn.Linear(4, 2), "critic": nn.Linear(2, 1)}
        step = {"optim": node("StepLR", {"step_size": 1})}
        return build_optimizers(parts, {"actor": step, "critic": step})

    container, other = built(), built()
    container.step()
    container.step()
    load_optimizer_state_dict(other, optimizer_state_dict(container))
    assert [group["lr"] for group in other.param_groups] == pytest.approx([1e-4] * 2)


def test_strict_false_drops_an_argument_with_a_warning() -> None:
    config = node("StepLR", {"step_size": 2, "power": 3}, strict=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OptimHydraWarning)
        optimizer, scheduler = build(config)
    (warning,) = caught
    assert str(warning.message) == (
        f"{ARGUMENTS}.power is not read by the schedule {TORCH}.StepLR"
    )
    assert rates(optimizer, scheduler, 3)[2] == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            f"{TORCH}.Step",
            {},
            f"{TORCH} has no Step: did you mean StepLR? @ lr_scheduler_type",
        ),
        (
            "os.system",
            {},
            "os.system is no class of torch.optim.lr_scheduler.LRScheduler"
            " @ lr_scheduler_type",
        ),
        (
            "nowhere.Schedule",
            {},
            "the module nowhere is not installed: install its package"
            " @ lr_scheduler_type",
        ),
        (
            f"{TORCH}.ReduceLROnPlateau",
            {},
            f"{TORCH}.ReduceLROnPlateau needs metrics at each step, which no config"
            " has: build it in the trainer, over the optimizer @ lr_scheduler_type",
        ),
        (
            f"{TORCH}.StepLR",
            {"step_size": 2, "gama": 0.5},
            f"the schedule {TORCH}.StepLR does not read {ARGUMENTS}.gama: did you mean"
            f" gamma? @ {ARGUMENTS}.gama",
        ),
        (
            f"{TORCH}.LambdaLR",
            {},
            f"LambdaLR needs lr_lambda: set {ARGUMENTS}.lr_lambda; where it is an"
            " object, write a function instead, with register_schedule"
            f" @ {ARGUMENTS}.lr_lambda",
        ),
        (
            f"{TORCH}.StepLR",
            {"step_size": "two"},
            f"'two' is not a number such as 0 @ {ARGUMENTS}.step_size",
        ),
        (
            f"{TORCH}.CosineAnnealingWarmRestarts",
            {"T_0": -3},
            "CosineAnnealingWarmRestarts fails: ValueError: Expected positive integer"
            f" T_0, but got -3 @ {ARGUMENTS}",
        ),
        (
            f"{TORCH}.CyclicLR",
            {"base_lr": 1e-3, "max_lr": 0.1},
            "CyclicLR sets momentum too, and a schedule sets the rate: set"
            f" {ARGUMENTS}.cycle_momentum=false @ {ARGUMENTS}",
        ),
        (
            "cosine",
            {"power": 2},
            f"the schedule cosine does not read {ARGUMENTS}.power: leave it out, or"
            f" strict=false @ {ARGUMENTS}.power",
        ),
        (
            f"{TORCH}.ExponentialLR",
            {"gamma": {"_target_": "os.getcwd"}},
            "2 problems:\n  - _target_ is refused here: arguments are plain values"
            f" @ {ARGUMENTS}.gamma\n  - {{'_target_': 'os.getcwd'}} is not a float"
            f" @ {ARGUMENTS}.gamma",
        ),
    ],
)
def test_what_can_t_be_had_is_said(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    config = {"lr_scheduler_type": name, ARGUMENTS: arguments}
    with pytest.raises(ConfigError) as caught:
        build(config, 20)
    assert str(caught.value) == message


def test_a_program_s_modules_hold_for_schedulers_too() -> None:
    set_allowed_impls(["torch.optim"])
    try:
        with pytest.raises(TargetError) as caught:
            build(node("StepLR", {"step_size": 2}))
    finally:
        set_allowed_impls(None)
    assert str(caught.value) == (
        f"{TORCH} is not among the modules this program allows: torch.optim; the"
        " program itself adds one by set_allowed_impls @ lr_scheduler_type"
    )
