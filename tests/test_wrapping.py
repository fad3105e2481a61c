"""Optimizers that wrap another one take it as a nested node, fields from the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pytorch_optimizer import SAM, AdamMini, Lookahead, OrthoGrad, ScheduleFreeWrapper
from torch import distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from optim_hydra import ConfigError, build_lr_scheduler, build_optimizer, grad_norm

IMPL = "pytorch_optimizer"


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def wrapped(optimizer: str, extra: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "optimizer": optimizer,
        "optimizer_impl": IMPL,
        "override_optimizer_config": extra,
        "_full_key_": "actor.optim",
        **fields,
    }


def loss_of(module: nn.Module) -> torch.Tensor:
    return module(torch.ones(3, 4)).square().sum()


def test_lookahead_wraps_the_class_of_its_nested_node() -> None:
    inner = {"optimizer": "AdamW", "override_optimizer_config": {"amsgrad": True}}
    config = wrapped(
        "Lookahead",
        {"k": 2, "alpha": 0.8, "optimizer": inner},
        lr=0.05,
        no_decay=["1d"],
        param_groups=[{"pattern": "2.*", "lr_mult": 0.5}],
        clip_grad=1.0,
        lr_scheduler_type="linear",
        total_training_steps=10,
    )
    module = net()
    optimizer = build_optimizer(module, config)
    assert type(optimizer) is Lookahead
    assert type(optimizer.optimizer) is torch.optim.AdamW
    assert (optimizer.k, optimizer.alpha) == (2, 0.8)
    assert [(g["lr"], g["weight_decay"]) for g in optimizer.param_groups] == [
        (0.05, 0.01),
        (0.05, 0.0),
        (0.025, 0.01),
        (0.025, 0.0),
    ]
    assert all(group["amsgrad"] for group in optimizer.optimizer.param_groups)
    scheduler = build_lr_scheduler(optimizer, config)
    first = loss_of(module).item()
    for _ in range(10):
        optimizer.zero_grad()
        loss_of(module).backward()
        optimizer.step()
        scheduler.step()
    assert loss_of(module).item() < first / 2
    assert grad_norm(optimizer) is not None
    assert optimizer.optimizer.param_groups[0]["lr"] == 0.0


def test_sam_takes_the_class_and_its_arguments() -> None:
    inner = {"optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}}
    config = wrapped(
        "SAM",
        {"rho": 0.1, "base_optimizer": inner},
        lr=0.05,
        param_groups=[{"pattern": "0.*", "lr_mult": 0.1}],
    )
    module = net()
    optimizer = build_optimizer(module, config, provides=["closure_after_backward"])
    assert type(optimizer) is SAM
    assert type(optimizer.base_optimizer) is torch.optim.SGD
    assert [g["lr"] for g in optimizer.param_groups] == [0.05, pytest.approx(0.005)]
    assert {(g["momentum"], g["rho"]) for g in optimizer.param_groups} == {(0.9, 0.1)}

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(module)
        loss.backward()
        return loss

    first = closure().item()
    for _ in range(5):
        closure()
        optimizer.step(closure)
    assert closure().item() < first


def test_wrappers_nest_and_a_name_is_enough() -> None:
    lookahead = {
        "optimizer": "Lookahead",
        "optimizer_impl": IMPL,
        "override_optimizer_config": {"k": 3, "optimizer": "SGD"},
    }
    config = wrapped("OrthoGrad", {"optimizer": lookahead}, lr=0.1)
    optimizer = build_optimizer(net(), config)
    assert type(optimizer) is OrthoGrad
    assert type(optimizer.optimizer) is Lookahead
    assert optimizer.optimizer.k == 3
    assert type(optimizer.optimizer.optimizer) is torch.optim.SGD


def test_a_wrapper_with_modes_starts_in_train_mode(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = wrapped("ScheduleFreeWrapper", {"optimizer": "SGD"}, lr=0.1)
    optimizer = build_optimizer(net(), config)
    assert type(optimizer) is ScheduleFreeWrapper
    assert optimizer.train_mode
    assert "expects the training loop to call optimizer.eval()" in caplog.text


def test_the_class_of_a_sharding_wrapper_is_a_nested_node_too(tmp_path: Path) -> None:
    config = {
        "optimizer": "ZeroRedundancyOptimizer",
        "optimizer_impl": ZeroRedundancyOptimizer.__module__,
        "lr": 0.1,
        "override_optimizer_config": {"optimizer_class": {"optimizer": "SGD"}},
    }
    with pytest.raises(ConfigError, match="init_process_group first"):
        build_optimizer(net(), config)
    store = f"file://{tmp_path / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        module = net()
        optimizer = build_optimizer(module, {**config, "no_decay": ["1d"]})
        loss_of(module).backward()
        optimizer.step()
    finally:
        dist.destroy_process_group()
    assert type(optimizer.optim) is torch.optim.SGD
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.01, 0]


def test_adam_mini_takes_the_model() -> None:
    config = wrapped("AdamMini", {}, lr=0.01)
    module = net()
    optimizer = build_optimizer(module, config)
    assert type(optimizer) is AdamMini
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert held == [id(p) for p in module.parameters()]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            wrapped("SAM", {"rho": 0.1}),
            "SAM wraps another optimizer: give it as {optimizer: AdamW} @"
            " actor.optim.override_optimizer_config.base_optimizer",
        ),
        (
            wrapped("Lookahead", {"optimizer": 3}),
            "Lookahead wraps another optimizer: give it as {optimizer: AdamW}, not 3 @"
            " actor.optim.override_optimizer_config.optimizer",
        ),
        (
            wrapped(
                "Lookahead",
                {"kk": 2, "optimizer": {"optimizer": "Adamw", "lr": 1, "impl": "x"}},
            ),
            "4 problems:\n"
            "  - Lookahead takes no kk: did you mean k? (it takes k, alpha,"
            " pullback_momentum) @ actor.optim.override_optimizer_config.kk\n"
            "  - the wrapped optimizer takes lr from the node: set it there @"
            " actor.optim.override_optimizer_config.optimizer.lr\n"
            "  - no field impl in a wrapped optimizer @"
            " actor.optim.override_optimizer_config.optimizer.impl\n"
            f"  - optimizer_impl=torch.optim (torch {torch.__version__}) was imported"
            " but has no Adamw: did you mean AdamW, Adam, RAdam? @"
            " actor.optim.override_optimizer_config.optimizer.optimizer",
        ),
        (
            wrapped("Lookahead", {"optimizer": "SGD", "lr": 0.1}),
            "the wrapped optimizer takes lr from the node: set it there @"
            " actor.optim.override_optimizer_config.lr",
        ),
        (
            wrapped("AdamMini", {}, no_decay=["bias"]),
            "AdamMini takes the whole model and makes its own groups: choose another"
            " class for param_groups, no_decay and layer_decay @ actor.optim.optimizer",
        ),
        (
            wrapped(
                "Lookahead",
                {"optimizer": "AdamW"},
                param_groups=[{"pattern": "0.*", "optimizer": "SGD"}],
            ),
            "Lookahead wraps one optimizer class, and the rules name several @"
            " actor.optim.optimizer",
        ),
    ],
    ids=[
        "no class",
        "a number",
        "typing errors",
        "a field beside it",
        "groups of a model",
        "two classes",
    ],
)
def test_what_is_wrong_with_a_wrapper_is_said_at_its_place(
    config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(net(), config, provides=["closure_after_backward"])
    assert str(caught.value) == message
