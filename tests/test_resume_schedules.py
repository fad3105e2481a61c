"""Schedules in a container and beside an optimizer: resumed again, broken, in order."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler as torch_schedules

from optim_hydra import (
    OptimizersContainer,
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_towers import SCHEDULED, refused, towers, trained_pair
from saved_training import bits, train

Make = Callable[[Any], Any]
TORCH_SCHEDULES: dict[str, Make] = {
    "sequential": lambda o: torch_schedules.SequentialLR(
        o,
        [torch_schedules.ConstantLR(o, 0.5, 2), torch_schedules.ExponentialLR(o, 0.9)],
        [3],
    ),
    "chained": lambda o: torch_schedules.ChainedScheduler(
        [
            torch_schedules.ConstantLR(o, 0.5, 4),
            torch_schedules.ChainedScheduler([torch_schedules.ExponentialLR(o, 0.9)]),
        ]
    ),
    "milestones": lambda o: torch_schedules.MultiStepLR(o, [2, 4]),
    "cosine": lambda o: torch_schedules.CosineAnnealingLR(o, 9),
}


class Stubborn(torch_schedules.ExponentialLR):
    """It can't be restored."""

    def load_state_dict(self, state_dict: Any) -> None:
        self.gamma = 7.0
        text = "not today"
        raise RuntimeError(text)


def held(make: Make, module: nn.Module | None = None) -> OptimizersContainer:
    parts = {"critic": module or nn.Linear(4, 2)}
    optimizers = {
        name: torch.optim.AdamW(list(part.named_parameters()), lr=0.1)
        for name, part in parts.items()
    }
    schedules = {name: make(optimizer) for name, optimizer in optimizers.items()}
    return OptimizersContainer.of(optimizers, lr_schedulers=schedules)


def stepped(container: OptimizersContainer, num_steps: int = 3) -> OptimizersContainer:
    for _ in range(num_steps):
        for group in container.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        container.step()
    return container


@pytest.mark.parametrize("kind", list(TORCH_SCHEDULES))
def test_a_schedule_of_torch_is_resumed_again_and_again(kind: str) -> None:
    module = nn.Linear(4, 2)
    twin = copy.deepcopy(module)
    running = held(TORCH_SCHEDULES[kind], module)
    resumed = held(TORCH_SCHEDULES[kind], twin)
    for _ in range(3):
        stepped(running, 2)
        stepped(resumed, 2)
        saved = copy.deepcopy(resumed.state_dict())
        resumed = held(TORCH_SCHEDULES[kind], twin)
        resumed.load_state_dict(saved)
    stepped(running)
    stepped(resumed)
    assert bits(dict(twin.named_parameters())) == bits(dict(module.named_parameters()))
    assert bits(resumed.state_dict()) == bits(running.state_dict())


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("cosine", "base_lrs", "x", "base_lrs is 'x', where a list is due"),
        ("cosine", "base_lrs", [], "base_lrs is empty"),
        ("cosine", "T_max", float("nan"), "T_max is nan, where a number is due"),
        (
            "cosine",
            "_last_lr",
            [torch.ones((), device="meta")],
            "_last_lr[0] is a Tensor, where a number is due",
        ),
        ("milestones", "milestones", {2: "x"}, "milestones.2 is 'x', where a number"),
        ("sequential", "_schedulers", None, "_schedulers is null, where a list is due"),
        ("sequential", "_schedulers", [{}], "_schedulers has 1 items, where 2 are due"),
        (
            "chained",
            "_schedulers",
            [{}, {}],
            "_schedulers[0] has other keys than this run's",
        ),
    ],
)
def test_what_a_schedule_of_torch_would_choke_on_is_refused(
    kind: str, key: str, value: Any, message: str
) -> None:
    saved = copy.deepcopy(stepped(held(TORCH_SCHEDULES[kind])).state_dict())
    saved[f"lr_schedulers.critic.{key}"] = value
    told = refused(stepped(held(TORCH_SCHEDULES[kind]), 1), saved)
    due = " is due" if message.endswith("number") else ""
    assert told == f"lr_schedulers.critic.{message}{due}"


def test_a_load_that_fails_at_the_very_end_is_undone() -> None:
    saved = copy.deepcopy(stepped(held(lambda o: Stubborn(o, 0.9))).state_dict())
    container = stepped(held(lambda o: Stubborn(o, 0.9)), 1)
    parameters = [p for g in container.param_groups for p in g["params"]]
    kept = {id(p): container.state[p] for p in parameters}
    assert refused(container, saved) == (
        "the saved state can't be loaded: RuntimeError: not today"
    )
    assert container.lr_schedulers["critic"].gamma == 0.9
    assert all(container.state[p] is kept[id(p)] for p in parameters)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "in_charge",
            torch.ones((), device="meta"),
            "in_charge of the saved schedule is a Tensor, where true or false is due",
        ),
        (
            "base_lrs",
            [[1]],
            "base_lrs of the saved schedule is [[1]], where a list of rates is due",
        ),
        (
            "base_lrs",
            None,
            "base_lrs of the saved schedule is null, where a list of rates is due",
        ),
        (
            "group 1",
            torch.ones(2),
            "group 1 of the saved schedule is a Tensor, where a mapping of fields is"
            " due",
        ),
        (
            "total_training_steps",
            torch.ones(2),
            "total_training_steps of the saved schedule is a Tensor, where a number or"
            " text is due",
        ),
        ("group x", {}, "the saved schedule can't be used: it has 'group x', and the"),
    ],
)
def test_what_a_schedule_never_saved_is_refused(
    key: str, value: Any, message: str
) -> None:
    config = {k: {**v, "on_resume": "checkpoint"} for k, v in SCHEDULED.items()}
    saved = copy.deepcopy(trained_pair(config)[1].state_dict())
    saved[f"lr_schedulers.critic.{key}"] = value
    container = build_optimizers(towers(), config)
    rest = " groups count from 0 to 0" if message.endswith("and the") else ""
    assert refused(container, saved) == f"critic: {message}{rest}"


@pytest.mark.parametrize("policy", ["config", "checkpoint"])
@pytest.mark.parametrize("count", [1, 2], ids=["one", "shared"])
def test_a_rate_that_is_learnt_is_restored_in_place(policy: Any, count: int) -> None:
    def made(rate: float) -> tuple[Any, Any]:
        lr = torch.tensor(rate, requires_grad=True)
        named = list(nn.Linear(4, 2).named_parameters())
        parts = [{"params": named}] if count == 1 else [{"params": [p]} for p in named]
        return lr, torch.optim.AdamW(parts, lr=lr, foreach=False)

    _, first = made(0.5)
    saved = optimizer_state_dict(first)
    assert not any(
        value.requires_grad for value in saved.values() if hasattr(value, "grad_fn")
    )
    lr, optimizer = made(0.25)
    load_optimizer_state_dict(optimizer, saved, on_resume=policy)
    assert all(group["lr"] is lr for group in optimizer.param_groups)
    assert lr.requires_grad
    assert lr.item() == (0.5 if policy == "checkpoint" else 0.25)


@pytest.mark.parametrize("policy", ["config", "checkpoint"])
def test_a_schedule_may_be_restored_before_its_optimizer(
    policy: str, module: nn.Module
) -> None:
    node = {"lr_scheduler_type": "linear", "total_training_steps": 10}
    first = build_optimizer(module, {"lr": 0.1, **node})
    schedule = build_lr_scheduler(first, {"lr": 0.1, **node})
    for step in range(4):
        train(module, first, [step])
        schedule.step()
    state = copy.deepcopy(optimizer_state_dict(first)), schedule.state_dict()
    found = []
    for schedule_first in (True, False):
        config = {"lr": 0.2, "on_resume": policy, **node}
        twin = copy.deepcopy(module)
        resumed = build_optimizer(twin, config)
        other = build_lr_scheduler(resumed, config)
        loads: list[Callable[[], Any]] = [
            lambda o=resumed: load_optimizer_state_dict(o, state[0]),
            lambda s=other: s.load_state_dict(state[1]),
        ]
        if policy == "config" or schedule_first:
            loads[1] = lambda load=loads[1]: told(load)
        for load in loads[::-1] if schedule_first else loads:
            load()
        rates = []
        for step in range(4, 7):
            rates.append(resumed.param_groups[0]["lr"])
            train(twin, resumed, [step])
            other.step()
        found.append((rates, bits(list(twin.parameters()))))
    assert found[0] == found[1]
    base = 0.1 if policy == "checkpoint" else 0.2
    assert found[0][0] == pytest.approx([base * 0.6, base * 0.5, base * 0.4])


def told(load: Callable[[], Any]) -> None:
    with pytest.warns(UserWarning, match="the saved schedule differs"):
        load()
