"""Training goes on bit for bit after a restart, with classes of other packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import nn
from torch.optim import Optimizer

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import assert_resumes, bits, layers, through_file, train

PYTORCH_OPTIMIZER = "pytorch_optimizer"
SINGLE = [
    ("schedulefree", "AdamWScheduleFree", {}),
    ("schedulefree", "AdamWScheduleFreePaper", {}),
    ("schedulefree", "RAdamScheduleFree", {}),
    ("schedulefree", "SGDScheduleFree", {"warmup_steps": 2}),
    ("prodigyopt", "Prodigy", {"safeguard_warmup": True}),
    ("lion_pytorch", "Lion", {}),
]
# They count steps in their groups, by a key that is not there before the first one.
COUNTING = [
    "AdaBelief",
    "Adan",
    "CAME",
    "DAdaptSGD",
    "Lamb",
    "Prodigy",
    "RAdam",
    "SOAP",
    "ScheduleFreeAdamW",
    "Shampoo",
    "StableAdamW",
]
MODES = ["AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree"]
MOMENTUM = {"optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}}


def of(impl: str, optimizer: str, /, **extra: Any) -> dict[str, Any]:
    config = {"optimizer_impl": impl, "optimizer": optimizer}
    if "Lion" in optimizer:
        config["betas"] = [0.9, 0.99]
    return {**config, "override_optimizer_config": extra}


def wrapping(
    optimizer: str, argument: str, inner: Any, /, **extra: Any
) -> dict[str, Any]:
    return of(PYTORCH_OPTIMIZER, optimizer, **{argument: inner}, **extra)


def lookahead(inner: Any, pullback: str = "none") -> dict[str, Any]:
    return wrapping("Lookahead", "optimizer", inner, k=2, pullback_momentum=pullback)


@pytest.mark.parametrize(
    ("impl", "optimizer", "extra"), SINGLE, ids=[row[1] for row in SINGLE]
)
def test_a_class_of_another_package_goes_on(
    impl: str, optimizer: str, extra: dict[str, Any], tmp_path: Path
) -> None:
    resumed = assert_resumes(layers, of(impl, optimizer, **extra), tmp_path)
    assert type(resumed).__name__ == optimizer


@pytest.mark.parametrize("optimizer", COUNTING)
def test_a_class_that_counts_in_its_groups_goes_on(
    optimizer: str, tmp_path: Path
) -> None:
    assert_resumes(layers, of(PYTORCH_OPTIMIZER, optimizer), tmp_path)


@pytest.mark.parametrize("pullback", ["none", "reset", "pullback"])
@pytest.mark.parametrize("inner", ["AdamW", MOMENTUM], ids=["AdamW", "SGD"])
def test_lookahead_goes_on_with_what_it_wraps(
    inner: Any, pullback: str, tmp_path: Path
) -> None:
    resumed: Any = assert_resumes(layers, lookahead(inner, pullback), tmp_path)
    assert resumed.state[next(iter(resumed.state))].keys() >= {"slow_params"}
    assert resumed.optimizer.state


@pytest.mark.parametrize("optimizer", ["SAM", "LookSAM"])
@pytest.mark.parametrize("inner", ["AdamW", MOMENTUM], ids=["AdamW", "SGD"])
def test_sam_goes_on_with_what_it_wraps(
    inner: Any, optimizer: str, tmp_path: Path
) -> None:
    config = wrapping(optimizer, "base_optimizer", inner)
    resumed: Any = assert_resumes(layers, config, tmp_path)
    assert resumed.base_optimizer.state


@pytest.mark.parametrize("inner", ["AdamW", lookahead("AdamW")], ids=["one", "two"])
def test_a_wrapper_that_shares_its_state_goes_on(inner: Any, tmp_path: Path) -> None:
    config = wrapping("OrthoGrad", "optimizer", inner)
    assert_resumes(layers, config, tmp_path)


def test_a_schedule_free_wrapper_goes_on(tmp_path: Path) -> None:
    config = wrapping("ScheduleFreeWrapper", "optimizer", "SGD")
    assert_resumes(layers, config, tmp_path)


def in_eval_mode(
    config: dict[str, Any], folder: Path
) -> list[tuple[nn.Module, Optimizer]]:
    """Train over an evaluation, once in one go and once from what it saved."""
    module, twin = layers(), layers()
    first: Any = build_optimizer(module, config, provides="train_eval_modes")
    train(module, first, range(3))
    first.eval()
    state = {"model": module.state_dict(), "optim": optimizer_state_dict(first)}
    saved = through_file(state, folder)
    twin.load_state_dict(saved["model"])
    resumed: Any = build_optimizer(twin, config, provides="train_eval_modes")
    load_optimizer_state_dict(resumed, saved["optim"])
    for net, optimizer in [(module, first), (twin, resumed)]:
        optimizer.train()
        train(net, optimizer, range(3, 6))
    return [(module, first), (twin, resumed)]


@pytest.mark.parametrize("optimizer", MODES)
def test_a_class_that_was_saved_in_eval_mode_goes_on(
    optimizer: str, tmp_path: Path
) -> None:
    (module, _), (twin, _) = in_eval_mode(of("schedulefree", optimizer), tmp_path)
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))
