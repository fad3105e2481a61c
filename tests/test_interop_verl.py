"""verl's config objects and nodes are configs, with the arguments of its function."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn

from case_helpers import exact
from optim_hydra import (
    ConfigError,
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    grad_norm,
)
from verl_fsdp_config import FSDPOptimizerConfig, yaml_node

PROGRAM = Path(__file__).parents[1] / "examples/interop/verl_update.py"
needs_verl = pytest.mark.skipif(
    importlib.util.find_spec("verl") is None,
    reason="verl wants a transformers below 5.11; run with verl and tensordict"
    " installed by pip install --no-deps",
)


def objects(**fields: Any) -> list[Any]:
    """Return a config in the forms that verl hands around."""
    node = {**yaml_node(), **fields}
    typed = FSDPOptimizerConfig(**{**node, "betas": tuple(node["betas"])})
    return [typed, FSDPOptimizerConfig(**fields), OmegaConf.create(node)]


def test_each_form_of_a_config_builds_the_same(module: nn.Module) -> None:
    fields = {
        "optimizer": "SGD",
        "lr": 0.1,
        "override_optimizer_config": {"momentum": 0.9},
        "lr_scheduler_type": "cosine",
        "lr_warmup_steps_ratio": 0.1,
        "total_training_steps": 20,
    }
    for config in objects(**fields):
        optimizer = build_optimizer(module.parameters(), config)
        assert type(optimizer) is torch.optim.SGD
        (group,) = optimizer.param_groups
        assert (group["lr"], group["momentum"], group["weight_decay"]) == (
            0.1, 0.9, 0.01,
        )  # fmt: skip
        scheduler = build_lr_scheduler(optimizer, config)
        assert scheduler.get_last_lr() == [0.0]
        optimizer.step()
        scheduler.step()
        assert scheduler.get_last_lr() == exact(0.05)


def test_steps_that_the_trainer_fills_in_are_read(module: nn.Module) -> None:
    config = FSDPOptimizerConfig(lr_scheduler_type="cosine")
    optimizer = build_optimizer(module, config)
    with pytest.raises(ConfigError, match="total_training_steps"):
        build_lr_scheduler(optimizer, config)
    config.total_training_steps = 100
    assert build_lr_scheduler(optimizer, config).schedule.total == 100


def test_betas_reach_a_class_whose_name_has_no_adam(module: nn.Module) -> None:
    config = FSDPOptimizerConfig(
        optimizer="Lion", optimizer_impl="lion_pytorch", betas=(0.9, 0.98)
    )
    optimizer = build_optimizer(module.parameters(), config)
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.98)


def test_clipping_once_more_to_the_same_norm_changes_nothing(module) -> None:
    config = FSDPOptimizerConfig(optimizer="SGD", lr=0.1, weight_decay=0.0)
    optimizer = build_optimizer(module.parameters(), config)
    before = [p.detach().clone() for p in module.parameters()]
    (module(torch.ones(2, 4)).sum() * 10).backward()
    told = nn.utils.clip_grad_norm_(module.parameters(), config.clip_grad)
    gradients = [p.grad.clone() for p in module.parameters()]
    optimizer.step()
    assert float(told) > 10
    assert grad_norm(optimizer) == pytest.approx(1.0, rel=1e-4)
    for old, gradient, new in zip(before, gradients, module.parameters(), strict=True):
        torch.testing.assert_close(new, old - 0.1 * gradient)


def test_old_keys_that_are_set_are_read(module: nn.Module) -> None:
    config = FSDPOptimizerConfig(warmup_style="cosine", total_training_steps=10)
    optimizer = build_optimizer(module, config)
    assert build_lr_scheduler(optimizer, config).schedule.name == "cosine"


def test_trees_hold_them(module: nn.Module) -> None:
    for config in objects(optimizer="SGD"):
        for tree in ({"actor": config}, {"actor": {"optim": config}}):
            container = build_optimizers({"actor": module}, tree)
            assert type(container["actor"]) is torch.optim.SGD


@pytest.mark.parametrize(
    "target",
    [
        "torch.optim.AdamW",
        "verl.workers.actor.DataParallelPPOActor",
        "verlOptimizerConfig",
    ],
)
def test_another_target_beside_the_fields_is_refused(target: str, module) -> None:
    node = {**yaml_node(), "_target_": target}
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node)
    assert str(caught.value) == (
        f"_target_ is set by the library, not to {target}: choose the class by"
        " optimizer_impl and optimizer @ _target_"
    )


@needs_verl
def test_the_example_trains_from_verls_own_objects(run_fresh) -> None:
    result = run_fresh(str(PROGRAM), "critic.optim.optimizer=RMSprop")
    assert result.returncode == 0, result.stderr
    losses = re.findall(r"^(actor|critic) loss (\S+)$", result.stdout, re.MULTILINE)
    assert [name for name, _ in losses] == ["actor", "critic"]
    assert max(float(loss) for _, loss in losses) < 1.0


AS_VERL = """
import torch
from torch import nn
from verl.utils.torch_functional import get_cosine_schedule_with_warmup
from verl.workers.config.optimizer import FSDPOptimizerConfig
from verl.workers.config.optimizer import build_optimizer as of_verl
from optim_hydra import build_lr_scheduler, build_optimizer

def train(build, schedule, config):
    torch.manual_seed(0)
    module = nn.Linear(4, 2)
    optimizer = build(module.parameters(), config)
    scheduler = schedule(optimizer, config)
    for _ in range(10):
        optimizer.zero_grad()
        module(torch.ones(2, 4)).square().sum().backward()
        nn.utils.clip_grad_norm_(module.parameters(), config.clip_grad)
        optimizer.step()
        scheduler.step()
    return torch.cat([p.detach().flatten() for p in module.parameters()])

def verls(optimizer, config):
    return get_cosine_schedule_with_warmup(
        optimizer, 2, config.total_training_steps, config.min_lr_ratio
    )

for optimizer, betas in (
    ("AdamW", (0.8, 0.95)), ("RAdam", (0.8, 0.95)), ("SGD", (0.9, 0.999))
):
    config = FSDPOptimizerConfig(
        optimizer=optimizer, lr=0.1, lr_scheduler_type="cosine", min_lr_ratio=0.1,
        lr_warmup_steps=2, total_training_steps=12, betas=betas,
    )
    ours = train(build_optimizer, build_lr_scheduler, config)
    torch.testing.assert_close(ours, train(of_verl, verls, config))
print("the same")
"""


@needs_verl
def test_training_is_that_of_verls_own_function(run_fresh) -> None:
    result = run_fresh("-c", AS_VERL)
    assert result.stdout.endswith("the same\n"), result.stderr
