"""What of other libraries' nodes has no equal is refused by name, all at once."""

from __future__ import annotations

import pytest
from torch import nn

import verl_configs as verl
from optim_hydra import build_optimizer, convert_config
from optim_hydra.errors import MigrationError, WrongObjectError

REFUSED = {
    "fsdp: a shift of a length that nobody knows": (
        verl.FSDPOptimizerConfig(lr_scheduler_type="cosine", zero_indexed_step=False),
        ["zero_indexed_step"],
    ),
    "megatron: muon": (
        verl.McoreOptimizerConfig(optimizer="muon"),
        ["optimizer", *(f for f in verl.McoreOptimizerConfig() if "muon_" in f)],
    ),
    "megatron: several": (
        verl.McoreOptimizerConfig(
            betas=(0.9, 0.95),
            lr_decay_style="inverse_square_root",
            use_precision_aware_optimizer=True,
            exp_avg_dtype="bf16",
            override_optimizer_config={"optimizer_cpu_offload": True},
        ),
        [
            "betas",
            "lr_decay_style",
            "use_precision_aware_optimizer",
            "exp_avg_dtype",
            "override_optimizer_config.optimizer_cpu_offload",
        ],
    ),
    "veomni": (
        verl.VeOmniOptimizerConfig(
            optimizer="anyprecision_adamw",
            lr_decay_ratio=0.9,
            lr_warmup_steps=10,
            override_optimizer_config={"amsgrad": True},
        ),
        [
            "lr_warmup_steps",
            "optimizer",
            "lr_decay_ratio",
            "override_optimizer_config.amsgrad",
        ],
    ),
    "automodel": (
        verl.AutomodelOptimizerConfig(
            lr_scheduler_type="inverse-square-root",
            wd_incr_style="linear",
            exp_avg_dtype="bf16",
        ),
        ["lr_scheduler_type", "wd_incr_style", "exp_avg_dtype"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_equal_is_refused_by_name(name: str, module: nn.Module) -> None:
    config, keys = REFUSED[name]
    with pytest.raises(MigrationError) as caught:
        build_optimizer(module, config)
    assert sorted(p.key for p in caught.value.problems) == sorted(keys)


def test_the_message_says_what_to_write() -> None:
    config = verl.McoreOptimizerConfig(lr=0.0, min_lr=1e-6, betas=(0.9, 0.95))
    with pytest.raises(MigrationError) as caught:
        convert_config(config)
    assert str(caught.value) == (
        "2 problems:\n"
        "  - verl gives Megatron no betas, so it had [0.9, 0.999]: write these or, to"
        " have [0.9, 0.95], adam_beta1 and adam_beta2 in override_optimizer_config"
        " @ betas\n"
        "  - min_lr is an absolute rate and lr is not said beside it: write"
        " min_lr_ratio, a share of lr @ min_lr"
    )


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(WrongObjectError) as caught:
        convert_config({}, "transformer")
    assert str(caught.value) == ("no source 'transformer': did you mean transformers?")


def test_what_the_message_says_decides_it() -> None:
    kept = verl.McoreOptimizerConfig(betas=(0.9, 0.999))
    assert convert_config(kept).betas == (0.9, 0.999)
    extra = {"adam_beta1": 0.9, "adam_beta2": 0.95}
    changed = verl.McoreOptimizerConfig(
        betas=(0.9, 0.95), override_optimizer_config=extra
    )
    assert convert_config(changed).betas == (0.9, 0.95)
