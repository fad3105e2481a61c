"""What is saved of a schedule, as public bug reports met it.

Cases: B79.
"""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from case_helpers import ACTOR_BASE, COSINE, Compose, exact
from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.errors import OptimHydraWarning
from saved_training import bits, layers, refused_load, through_file, train

LONGER = "actor.optim.total_training_steps=200"
RULE = "[{pattern: bias, lr_scheduler_type: constant, lr_warmup_steps: 5}]"


def scheduled(module: nn.Module, config: Any, num_steps: int = 0) -> tuple[Any, Any]:
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    for step in range(num_steps):
        train(module, optimizer, [step])
        scheduler.step()
    return optimizer, scheduler


@pytest.mark.parametrize("rules", ["[]", RULE], ids=["one", "two"])
def test_B79_a_schedule_is_saved_as_plain_numbers_and_text(
    rules: str, module: nn.Module, compose: Compose, tmp_path: Path
) -> None:
    given = f"actor.optim.param_groups={rules}"
    config = compose(given, yaml=ACTOR_BASE + COSINE).actor.optim
    optimizer, scheduler = scheduled(module, config, 30)
    state = scheduler.state_dict()
    assert through_file(state, tmp_path) == state
    assert json.loads(json.dumps(state)) == state
    rates = [group["lr"] for group in optimizer.param_groups]
    twin = pickle.loads(pickle.dumps(scheduler))
    assert [group["lr"] for group in twin.optimizer.param_groups] == rates

    resumed, other = scheduled(module, config)
    other.load_state_dict(through_file(state, tmp_path))
    assert [group["lr"] for group in resumed.param_groups] == rates
    for each in (scheduler, twin, other):
        each.optimizer.step()
        each.step()
    assert twin.get_last_lr() == other.get_last_lr() == scheduler.get_last_lr()


@pytest.mark.parametrize(
    ("override", "told"),
    [
        (LONGER, "total_training_steps 110 -> 200"),
        (
            "actor.optim.lr_scheduler_type=constant",
            "lr_scheduler_type cosine -> constant",
        ),
        ("actor.optim.lr_warmup_steps=20", "lr_warmup_steps 10 -> 20"),
        ("actor.optim.min_lr_ratio=0.2", "min_lr_ratio 0.1 -> 0.2"),
        ("actor.optim.lr=5e-4", "base_lrs [0.001] -> [0.0005]"),
    ],
)
def test_B79_a_schedule_that_differs_is_told_with_both_values(
    override: str, told: str, module: nn.Module, compose: Compose
) -> None:
    config = compose(yaml=ACTOR_BASE + COSINE).actor.optim
    _, scheduler = scheduled(module, config, 30)
    more = ["actor.optim.min_lr_ratio=null"] if override.endswith("constant") else []
    config = compose(override, *more, yaml=ACTOR_BASE + COSINE).actor.optim
    _, other = scheduled(module, config)
    with pytest.warns(OptimHydraWarning) as caught:
        other.load_state_dict(scheduler.state_dict())
    assert told in str(caught[0].message)
    assert other.last_epoch == 30


def test_B79_kin_a_schedule_in_a_container_is_told_too(
    module: nn.Module, compose: Compose, caplog: pytest.LogCaptureFixture
) -> None:
    config = compose(yaml=ACTOR_BASE + COSINE)
    container = build_optimizers({"actor": module}, config)
    train(module, container, range(30))
    config = compose(LONGER, yaml=ACTOR_BASE + COSINE)
    resumed = build_optimizers({"actor": module}, config)
    resumed.load_state_dict(copy.deepcopy(container.state_dict()))
    assert "total_training_steps: saved 110, now 200 (actor)" in caplog.text
    assert resumed.lr_schedulers["actor"].last_epoch == 30


def test_B79_kin_what_a_call_says_of_resuming_holds_for_schedules(
    module: nn.Module, compose: Compose
) -> None:
    config = compose(yaml=ACTOR_BASE + COSINE)
    container = build_optimizers({"actor": module}, config)
    train(module, container, range(30))
    saved = copy.deepcopy(container.state_dict())
    config = compose(LONGER, yaml=ACTOR_BASE + COSINE)
    resumed = build_optimizers({"actor": module}, config)
    assert refused_load(resumed, saved, on_resume="strict") == (
        "actor: the saved schedule differs: total_training_steps 110 -> 200;"
        " on_resume is strict: config keeps this run's, checkpoint takes the saved"
        " @ on_resume"
    )
    report = load_optimizer_state_dict(resumed, saved, on_resume="checkpoint")
    assert [str(each) for each in report.differences] == [
        "total_training_steps: 110 as saved, not 200 (actor)"
    ]
    rate = resumed.lr_schedulers["actor"].get_last_lr()
    assert rate == container.lr_schedulers["actor"].get_last_lr()


def test_B79_kin_schedules_of_rules_in_other_groups() -> None:
    node = {"lr_scheduler_type": "cosine", "total_training_steps": 20}
    rule = {"pattern": "*.bias", "lr_scheduler_type": "linear"}
    config = {"part": {"optim": {**node, "param_groups": [rule]}}}
    part = layers()
    container = build_optimizers({"part": part}, config)
    train(part, container, range(4))
    saved = copy.deepcopy(container.state_dict())
    config["part"]["optim"]["param_groups"].insert(0, {"pattern": "0.*", "lr": 0.5})
    resumed = build_optimizers({"part": part}, config)
    assert refused_load(resumed, saved, on_resume="checkpoint") == (
        "2 problems:\n"
        "  - part: rules have schedules of their own, saved with 2 groups, and this run"
        " has 3: use on_resume: config @ on_resume\n"
        "  - lr was saved with several values for the parameters of one group"
        " (part.0.weight, part.0.bias, ...): group them as they were, or use"
        " on_resume: config"
    )
    load_optimizer_state_dict(resumed, saved)
    assert resumed.lr_schedulers["part"].last_epoch == 4


@pytest.mark.parametrize("schedule_first", [True, False])
@pytest.mark.parametrize("policy", ["config", "checkpoint"])
def test_B79_kin_a_schedule_goes_on_whichever_is_restored_first(
    policy: str,
    schedule_first: bool,
    module: nn.Module,
    compose: Compose,
    tmp_path: Path,
) -> None:
    given = f"actor.optim.on_resume={policy}"
    config = compose(given, yaml=ACTOR_BASE + COSINE).actor.optim
    optimizer, scheduler = scheduled(module, config, 60)
    state = {"o": optimizer_state_dict(optimizer), "s": scheduler.state_dict()}
    state = through_file(state, tmp_path)
    twin = copy.deepcopy(module)
    resumed = build_optimizer(twin, config)
    if not schedule_first:
        load_optimizer_state_dict(resumed, state["o"])
    other = build_lr_scheduler(resumed, config)
    if schedule_first:
        load_optimizer_state_dict(resumed, state["o"])
    other.load_state_dict(state["s"])
    assert other.get_last_lr() == scheduler.get_last_lr() == exact(5.5e-4)
    for step in range(60, 65):
        for net, one, schedule in [
            (module, optimizer, scheduler),
            (twin, resumed, other),
        ]:
            train(net, one, [step])
            schedule.step()
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))
    assert resumed.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
