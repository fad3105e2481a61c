"""Nodes of torchtitan, transformers, Megatron and VeOmni; which of verl's a node is."""

from __future__ import annotations

from typing import Any

import pytest

from optim_hydra import convert_config
from optim_hydra.conversion import dialect_of
from verl_configs import said

OTHERS = {
    "torchtitan": (
        "torchtitan",
        {
            "name": "AdamW",
            "lr": 8e-4,
            "beta1": 0.9,
            "beta2": 0.95,
            "implementation": "fused",
            "warmup_steps": 200,
            "decay_ratio": 0.8,
            "min_lr_factor": 0.1,
            "total_steps": None,
        },
        {
            "lr": 8e-4,
            "betas": (0.9, 0.95),
            "implementation": "fused",
            "lr_scheduler_type": "wsd",
            "lr_decay_steps_ratio": 0.8,
            "lr_warmup_steps": 200,
            "min_lr_ratio": 0.1,
            "zero_indexed_step": False,
        },
    ),
    "transformers": (
        "transformers",
        {
            "optim": "paged_adamw_8bit",
            "optim_args": "block_wise=False,percentile_clipping=95",
            "learning_rate": 5e-5,
            "adam_beta2": 0.95,
            "max_grad_norm": 0,
            "lr_scheduler_type": "cosine_with_min_lr",
            "lr_scheduler_kwargs": {"min_lr": 5e-6},
            "warmup_ratio": 0.03,
            "warmup_steps": 0,
            "max_steps": 1010,
        },
        {
            "optimizer": "PagedAdamW8bit",
            "optimizer_impl": "bitsandbytes.optim",
            "override_optimizer_config": {
                "block_wise": False,
                "percentile_clipping": 95,
            },
            "lr": 5e-5,
            "betas": (0.9, 0.95),
            "lr_scheduler_type": "cosine",
            "lr_warmup_steps": 31,
            "min_lr_ratio": 0.1,
            "total_training_steps": 1010,
        },
    ),
    "megatron": (
        "megatron",
        {
            "optimizer": "adam",
            "lr": 3e-4,
            "min_lr": 3e-5,
            "adam_beta1": 0.9,
            "adam_beta2": 0.95,
            "lr_decay_style": "cosine",
            "lr_warmup_iters": 500,
            "lr_decay_iters": 10000,
        },
        {
            "lr": 3e-4,
            "betas": (0.9, 0.95),
            "lr_scheduler_type": "cosine",
            "lr_warmup_steps": 500,
            "total_training_steps": 10000,
            "min_lr_ratio": 0.1,
        },
    ),
    "veomni": (
        "veomni",
        {"optimizer_type": "adamw", "lr": 1e-4, "lr_start": 1e-5, "max_grad_norm": 1.0},
        {"lr": 1e-4, "lr_warmup_init_ratio": 0.1, "clip_grad": 1.0},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_node_of_another_library_becomes_one_of_ours(name: str) -> None:
    source, config, expected = OTHERS[name]
    assert said(convert_config(config, source)) == expected


@pytest.mark.parametrize(
    ("items", "dialect"),
    [
        ({"lr": 1e-5}, "verl.fsdp"),
        ({"lr_decay_style": "cosine"}, "verl.megatron"),
        ({"override_optimizer_config.adam_beta2": 0.95}, "verl.megatron"),
        ({"optimizer": "adamw"}, "verl.veomni"),
        ({"decay_type": "cosine"}, "verl.torchtitan"),
        ({"init_lr_ratio": 0.1}, "verl.automodel"),
        ({"min_lr": 0.0, "lr_min": 0.0}, "verl.fsdp"),
    ],
)
def test_a_group_of_verl_is_told_by_its_keys(
    items: dict[str, Any], dialect: str
) -> None:
    assert dialect_of("verl", items) == dialect
