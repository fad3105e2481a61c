"""Whose settings a resumed run has, as public bug reports met it.

Cases: B70, B72, B80.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from case_helpers import ACTOR_BASE, Compose
from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import (
    FORMS,
    bits,
    in_each_form,
    kept_for,
    refused_load,
    through_file,
    train,
    trained,
)

OTHER_RATE = "actor.optim.lr=5e-4"
OTHER_VALUES = (OTHER_RATE, "actor.optim.weight_decay=0.3")
DIFFERENCES = [
    "lr: saved 0.001, now 0.0005 (weight, bias)",
    "weight_decay: saved 0.01, now 0.3 (weight, bias)",
]
NOT_ADAMW = (
    "3 problems:\n"
    "  - {0}weight was trained with torch.optim.adamw.AdamW, and now with {1}\n"
    "  - {0}bias was trained with torch.optim.adamw.AdamW, and now with {1}\n"
    "  - to start these without state: missing='fresh'"
)


def actor(*overrides: str, compose: Compose) -> Any:
    return compose(*overrides, yaml=ACTOR_BASE).actor.optim


def test_B70_another_class_is_refused_with_both_names(
    module: nn.Module, compose: Compose, tmp_path: Path
) -> None:
    saved = optimizer_state_dict(trained(module, actor(compose=compose)))
    sgd = actor("actor.optim.optimizer=SGD", "actor.optim.lr=1e-2", compose=compose)
    optimizer = build_optimizer(module, sgd)
    message = refused_load(optimizer, through_file(saved, tmp_path))
    assert "AdamW" in message
    assert "SGD" in message
    assert "actor" in message


@pytest.mark.parametrize("cls", ["torch.optim.sgd.SGD", "torch.optim.adam.Adam"])
def test_B70_kin_in_a_container_the_module_stands_before_the_names(
    cls: str, module: nn.Module
) -> None:
    container = build_optimizers({"actor": module}, {"actor": {}})
    train(module, container, range(2))
    other = {"actor": {"optimizer": cls.rpartition(".")[2]}}
    resumed = build_optimizers({"actor": module}, other)
    message = refused_load(resumed, container.state_dict())
    assert message == NOT_ADAMW.format("actor.", cls)


@in_each_form
@pytest.mark.parametrize(
    ("saved_cls", "cls"), [("AdamW", "SGD"), ("SGD", "AdamW"), ("AdamW", "RMSprop")]
)
def test_B70_kin_another_class_is_refused_whoever_saved(
    saved_cls: str, cls: str, form: str, module: nn.Module
) -> None:
    config = {"optimizer": saved_cls}
    if saved_cls == "SGD":
        config["override_optimizer_config"] = {"momentum": 0.9}
    saved = FORMS[form](module, trained(module, config))
    refused_load(build_optimizer(module, {"optimizer": cls}), saved)


def test_B70_kin_another_class_starts_afresh_on_purpose(
    module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    optimizer = build_optimizer(module, {"optimizer": "SGD"})
    report = load_optimizer_state_dict(optimizer, saved, missing="fresh")
    assert report.fresh == ["weight", "bias"]
    assert not optimizer.state
    assert caplog.messages == [
        "restored the state of 0 parameters, started weight, bias without state"
    ]
    train(module, optimizer, range(2))


@pytest.mark.parametrize("by_argument", [False, True])
@pytest.mark.parametrize(
    ("policy", "lr", "decay"), [("config", 5e-4, 0.3), ("checkpoint", 1e-3, 0.01)]
)
def test_B72_settings_follow_the_policy_and_differences_are_told(
    policy: str,
    lr: float,
    decay: float,
    by_argument: bool,
    module: nn.Module,
    compose: Compose,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = actor(compose=compose)
    optimizer = build_optimizer(module, config)
    build_lr_scheduler(optimizer, config)
    train(module, optimizer, range(2))
    said = [] if by_argument else [f"actor.optim.on_resume={policy}"]
    config = actor(*OTHER_VALUES, *said, compose=compose)
    resumed = build_optimizer(module, config)
    build_lr_scheduler(resumed, config)
    given = {"on_resume": policy} if by_argument else {}
    saved = optimizer_state_dict(optimizer)
    report = load_optimizer_state_dict(resumed, saved, **given)
    (group,) = resumed.param_groups
    assert (group["lr"], group["weight_decay"]) == (lr, decay)
    assert group["initial_lr"] == lr
    expected = DIFFERENCES
    if policy == "checkpoint":
        expected = [
            "lr: 0.001 as saved, not 0.0005 (weight, bias)",
            "weight_decay: 0.01 as saved, not 0.3 (weight, bias)",
        ]
    assert [str(difference) for difference in report.differences] == expected
    assert all(text in caplog.messages[-1] for text in expected)
    assert kept_for(resumed) == kept_for(optimizer)


def test_B72_strict_refuses_every_difference(
    module: nn.Module, compose: Compose
) -> None:
    saved = optimizer_state_dict(trained(module, actor(compose=compose)))
    strict = actor(*OTHER_VALUES, "actor.optim.on_resume=strict", compose=compose)
    message = refused_load(build_optimizer(module, strict), saved)
    placed = [f"{difference} @ actor.optim" for difference in DIFFERENCES]
    hint = "on_resume is strict: config keeps this run's settings, checkpoint takes"
    placed.append(f"{hint} the saved @ actor.optim")
    assert message == "\n  - ".join(["3 problems:", *placed])


@in_each_form
def test_B72_kin_whoever_saved_the_config_wins(form: str, module: nn.Module) -> None:
    saved = FORMS[form](module, trained(module, {}))
    config = {"lr": 5e-4, "weight_decay": 0.3, "betas": [0.8, 0.9], "eps": 1e-6}
    optimizer = build_optimizer(module, config)
    before = bits(optimizer.param_groups)
    report = load_optimizer_state_dict(optimizer, saved)
    assert bits(optimizer.param_groups) == before
    assert [d.key for d in report.differences] == ["lr", "betas", "eps", "weight_decay"]


@pytest.mark.parametrize("form", ["ours", "torch"])
def test_B80_options_that_were_not_saved_are_this_runs(
    form: str, module: nn.Module
) -> None:
    optimizer = trained(module, {})
    saved = copy.deepcopy(FORMS[form](module, optimizer))
    removed = {"foreach", "fused", "amsgrad"}
    if form == "ours":
        saved = {k: v for k, v in saved.items() if k.split(".")[-1] not in removed}
    for group in saved.get("param_groups", []):
        for key in removed:
            del group[key]
    twin = copy.deepcopy(module)
    resumed = build_optimizer(twin, {})
    fresh = bits(resumed.param_groups)
    load_optimizer_state_dict(resumed, saved)
    assert bits(resumed.param_groups) == fresh
    assert kept_for(resumed) == kept_for(optimizer)
    train(module, optimizer, [2])
    train(twin, resumed, [2])
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))


def test_B80_kin_counters_that_were_numbers_then_are_tensors_now(
    module: nn.Module,
) -> None:
    optimizer = trained(module, {})
    old = copy.deepcopy(optimizer.state_dict())
    for kept in old["state"].values():
        kept["step"] = int(kept["step"])  # as torch saved it before 1.12
    twin = copy.deepcopy(module)
    resumed = build_optimizer(twin, {})
    load_optimizer_state_dict(resumed, old)
    train(module, optimizer, [2])
    train(twin, resumed, [2])
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))
