"""Whole nodes of verl's five groups become nodes of ours with equal meaning."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

import verl_configs as verl
from optim_hydra import convert_config
from verl_configs import said

CONVERTED = {
    "fsdp": (verl.FSDPOptimizerConfig(), {"clip_grad": 1.0}),
    "fsdp cosine": (
        verl.FSDPOptimizerConfig(lr=1e-5, lr_scheduler_type="cosine", min_lr_ratio=0.1),
        {
            "lr": 1e-5,
            "clip_grad": 1.0,
            "lr_scheduler_type": "cosine",
            "min_lr_ratio": 0.1,
        },
    ),
    "fsdp: the floor of a constant rate has no effect": (
        verl.FSDPOptimizerConfig(min_lr_ratio=0.1, zero_indexed_step=False),
        {"clip_grad": 1.0},
    ),
    "fsdp: zero steps of warmup leave the ratio": (
        verl.FSDPOptimizerConfig(lr_warmup_steps=0, lr_warmup_steps_ratio=0.1),
        {"clip_grad": 1.0, "lr_warmup_steps_ratio": 0.1},
    ),
    "fsdp: no steps of warmup leave the ratio": (
        verl.FSDPOptimizerConfig(lr_warmup_steps=None, lr_warmup_steps_ratio=0.1),
        {"clip_grad": 1.0, "lr_warmup_steps_ratio": 0.1},
    ),
    "fsdp: steps of warmup win over the ratio": (
        verl.FSDPOptimizerConfig(lr_warmup_steps=5, lr_warmup_steps_ratio=0.1),
        {"clip_grad": 1.0, "lr_warmup_steps": 5},
    ),
    "fsdp: a ratio is rounded down": (
        verl.FSDPOptimizerConfig(lr_warmup_steps_ratio=0.16, total_training_steps=10),
        {"clip_grad": 1.0, "lr_warmup_steps": 1, "total_training_steps": 10},
    ),
    "fsdp: the extra arguments are flat and win": (
        verl.FSDPOptimizerConfig(override_optimizer_config={"lr": 1e-4, "eps": 1e-6}),
        {
            "lr": 1e-4,
            "clip_grad": 1.0,
            "override_optimizer_config": {"eps": 1e-6},
        },
    ),
    "fsdp: the older clip wins": (
        verl.FSDPOptimizerConfig(grad_clip=0.5),
        {"clip_grad": 0.5},
    ),
    "fsdp: a class without adam in its name keeps its own betas": (
        verl.FSDPOptimizerConfig(optimizer="Lion", optimizer_impl="lion_pytorch"),
        {
            "optimizer": "Lion",
            "optimizer_impl": "lion_pytorch",
            "betas": (0.9, 0.99),
            "clip_grad": 1.0,
        },
    ),
    "fsdp: betas that verl drops": (
        verl.FSDPOptimizerConfig(
            optimizer="Lion", optimizer_impl="lion_pytorch", betas=(0.95, 0.98)
        ),
        {
            "optimizer": "Lion",
            "optimizer_impl": "lion_pytorch",
            "betas": (0.95, 0.98),
            "clip_grad": 1.0,
        },
    ),
    "fsdp: a class without betas": (
        verl.FSDPOptimizerConfig(optimizer="SGD", betas=(0.9, 0.95)),
        {"optimizer": "SGD", "clip_grad": 1.0},
    ),
    "megatron": (
        verl.McoreOptimizerConfig(),
        {"clip_grad": 1.0, "lr_scheduler_type": "linear", "min_lr_ratio": 0.0},
    ),
    "megatron wsd": (
        verl.McoreOptimizerConfig(
            lr=1e-5,
            min_lr=1e-6,
            lr_warmup_init=1e-7,
            lr_decay_style="WSD",
            lr_wsd_decay_style="minus_sqrt",
            lr_wsd_decay_steps=25,
            lr_decay_steps=100,
            clip_grad=0.0,
            use_checkpoint_opt_param_scheduler=True,
            override_optimizer_config={"adam_beta2": 0.95, "adam_eps": 1e-6},
        ),
        {
            "lr": 1e-5,
            "betas": (0.9, 0.95),
            "eps": 1e-6,
            "lr_scheduler_type": "wsd",
            "lr_decay_style": "sqrt",
            "lr_decay_steps_ratio": 0.25,
            "total_training_steps": 100,
            "lr_warmup_init_ratio": 0.01,
            "min_lr_ratio": 0.1,
            "on_resume": "checkpoint",
        },
    ),
    "megatron sgd": (
        verl.McoreOptimizerConfig(optimizer="sgd", lr_decay_style="constant"),
        {
            "optimizer": "SGD",
            "clip_grad": 1.0,
            "override_optimizer_config": {"momentum": 0.9},
        },
    ),
    "veomni": (verl.VeOmniOptimizerConfig(), {"clip_grad": 1.0}),
    "veomni cosine": (
        verl.VeOmniOptimizerConfig(
            lr=1e-4, lr_min=1e-5, lr_start=1e-6, lr_scheduler_type="cosine"
        ),
        {
            "lr": 1e-4,
            "clip_grad": 1.0,
            "lr_scheduler_type": "cosine",
            "min_lr_ratio": 0.1,
            "lr_warmup_init_ratio": 0.01,
        },
    ),
    "torchtitan": (
        verl.TorchtitanOptimizerConfig(decay_type="cosine", min_lr_factor=0.1),
        {
            "eps": 1e-8,
            "clip_grad": 1.0,
            "lr_scheduler_type": "cosine",
            "min_lr_ratio": 0.1,
            "zero_indexed_step": False,
        },
    ),
    "torchtitan sqrt": (
        verl.TorchtitanOptimizerConfig(decay_type="sqrt"),
        {
            "eps": 1e-8,
            "clip_grad": 1.0,
            "lr_scheduler_type": "wsd",
            "lr_decay_style": "sqrt",
            "lr_decay_steps_ratio": 1.0,
            "min_lr_ratio": 0.0,
            "zero_indexed_step": False,
        },
    ),
    "automodel": (
        verl.AutomodelOptimizerConfig(master_weights=True),
        {
            "eps": 1e-8,
            "clip_grad": 1.0,
            "lr_scheduler_type": "cosine",
            "lr_warmup_init_ratio": 0.1,
            "min_lr_ratio": 0.01,
            "override_optimizer_config": {"master_weights": True},
        },
    ),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_a_group_of_verl_becomes_a_node_of_ours(name: str) -> None:
    config, expected = CONVERTED[name]
    assert said(convert_config(config)) == expected
    target = f"verl.workers.config.{type(config).__name__}"
    node = {**dict(config), "_target_": target}
    assert said(convert_config(node, "verl")) == expected
    assert said(convert_config(OmegaConf.create({"optim": node}).optim)) == expected
