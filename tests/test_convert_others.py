"""Nodes of torchtitan, transformers, Megatron and VeOmni; which of verl's a node is."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from transformers import TrainingArguments
from transformers.trainer_utils import SchedulerType
from transformers.training_args import OptimizerNames

from optim_hydra import convert_config
from optim_hydra.conversion_transformers import TRAINER_CLASSES, TRAINER_SCHEDULES
from optim_hydra.dialects import DIALECTS, dialect_of
from optim_hydra.errors import Problems
from optim_hydra.foreign_keys import FOREIGN_ROWS
from optim_hydra.targets import Target, load_class
from verl_configs import said

OTHERS = {
    "torchtitan's defaults": (
        "torchtitan",
        {"betas": [0.9, 0.98]},
        {
            "lr": 8e-4,
            "betas": (0.9, 0.98),
            "clip_grad": 1.0,
            "weight_decay": 0.1,
            "lr_scheduler_type": "linear",
            "lr_warmup_steps": 200,
            "zero_indexed_step": False,
        },
    ),
    "the Trainer's defaults": (
        "transformers",
        {},
        {
            "lr": 5e-5,
            "weight_decay": 0.0,
            "clip_grad": 1.0,
            "lr_scheduler_type": "linear",
        },
    ),
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
            "clip_grad": 1.0,
            "weight_decay": 0.1,
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
            "weight_decay": 0.0,
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
            "clip_grad": 1.0,
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


def test_the_trainers_defaults_and_names_are_those_of_transformers() -> None:
    own = {field.name: field.default for field in fields(TrainingArguments)}
    for key, value in DIALECTS["transformers"].defaults.items():
        assert own[key] == value
    assert TRAINER_CLASSES.keys() <= {name.value for name in OptimizerNames}
    assert TRAINER_SCHEDULES.keys() <= {name.value for name in SchedulerType}
    keys = {row.key for row in FOREIGN_ROWS if row.owner == "transformers"}
    assert keys - {"warmup_ratio"} <= own.keys()


@pytest.mark.parametrize("name", TRAINER_CLASSES)
def test_a_class_of_the_trainer_is_there(name: str) -> None:
    impl, cls = TRAINER_CLASSES[name]
    problems = Problems("")
    assert load_class(Target(impl, cls), problems) is not None, problems.found


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
