"""Training goes on bit for bit after a restart, with state of few bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import assert_resumes, bits, through_file, train

# Weights of 4096 numbers or more are kept in few bits, smaller ones are not.
STATES = {
    "_AdamW": "Tensor",
    "AdamW8bit": "OptimState8bit",
    "AdamW4bit": "OptimState4bit",
    "AdamWFp8": "OptimStateFp8",
}
BITSANDBYTES = ["AdamW8bit", "Lion8bit", "AdEMAMix8bit", "PagedAdamW8bit", "AdamW"]


@pytest.fixture(autouse=True)
def _without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")


def wide() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 64), nn.Linear(64, 64), nn.Linear(64, 2))


def torchao(optimizer: str, **fields: Any) -> dict[str, Any]:
    return {"optimizer_impl": "torchao.optim", "optimizer": optimizer, **fields}


@pytest.mark.parametrize("optimizer", list(STATES))
def test_a_class_of_torchao_goes_on(optimizer: str, tmp_path: Path) -> None:
    resumed = assert_resumes(wide, torchao(optimizer), tmp_path)
    (group,) = resumed.param_groups
    kept = {
        name: type(resumed.state[parameter]["exp_avg"]).__name__
        for name, parameter in zip(group["param_names"], group["params"], strict=True)
    }
    assert kept["1.weight"] == STATES[optimizer]
    assert kept["1.bias"] == "Tensor"


@pytest.mark.parametrize("optimizer", ["_AdamW", "AdamW8bit"])
def test_torchao_keeps_its_tensor_lr_the_tensor_that_it_is(
    optimizer: str, tmp_path: Path
) -> None:
    module = wide()
    first = build_optimizer(module, torchao(optimizer, lr=0.5))
    train(module, first, range(2))
    saved = through_file(optimizer_state_dict(first), tmp_path)
    resumed = build_optimizer(module, torchao(optimizer, lr=0.25))
    (group,) = resumed.param_groups
    before = group["lr"]
    assert isinstance(before, torch.Tensor)
    load_optimizer_state_dict(resumed, saved)
    assert group["lr"] is before
    assert float(group["lr"]) == 0.25
    load_optimizer_state_dict(resumed, saved, on_resume="checkpoint")
    assert group["lr"] is before
    assert float(group["lr"]) == 0.5


@pytest.mark.parametrize("optimizer", BITSANDBYTES)
def test_a_class_of_bitsandbytes_goes_on(optimizer: str, tmp_path: Path) -> None:
    config = {"optimizer_impl": "bitsandbytes.optim", "optimizer": optimizer}
    if "Lion" in optimizer:
        config["betas"] = [0.9, 0.99]
    if "AdEMAMix" in optimizer:
        config["betas"] = [0.9, 0.99, 0.999]
    resumed = assert_resumes(wide, config, tmp_path)
    state = resumed.state[resumed.param_groups[0]["params"][2]]
    dtypes = {getattr(value, "dtype", None) for value in state.values()}
    assert (torch.uint8 in dtypes) is ("8bit" in optimizer)


def test_loaded_quantised_state_is_a_copy() -> None:
    module = wide()
    config = torchao("AdamW8bit")
    first = build_optimizer(module, config)
    train(module, first, range(2))
    saved = optimizer_state_dict(first)
    before = bits(saved)
    resumed = build_optimizer(module, config)
    load_optimizer_state_dict(resumed, saved)
    train(module, resumed, [2])
    assert bits(saved) == before


@pytest.mark.parametrize("optimizer", ["AdamW8bit", "Lion8bit", "AdamW"])
def test_what_bitsandbytes_saved_itself_goes_on(optimizer: str, tmp_path: Path) -> None:
    config = {"optimizer_impl": "bitsandbytes.optim", "optimizer": optimizer}
    module, twin = wide(), wide()
    first = build_optimizer(module, config)
    train(module, first, range(2))
    state = {"model": module.state_dict(), "optim": first.state_dict()}
    saved = through_file(state, tmp_path)
    twin.load_state_dict(saved["model"])
    resumed = build_optimizer(twin, config)
    load_optimizer_state_dict(resumed, saved["optim"])
    train(module, first, range(2, 4))
    train(twin, resumed, range(2, 4))
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))
    assert bits(optimizer_state_dict(resumed)) == bits(optimizer_state_dict(first))
