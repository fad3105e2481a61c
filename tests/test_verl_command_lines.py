"""Command lines found in verl's examples and in public scripts, word for word."""

from __future__ import annotations

import warnings

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import build_lr_scheduler, build_optimizer
from optim_hydra.errors import MigrationError, RenamedKeyWarning, UnknownKeyError

MOUNTS = ["actor_rollout_ref.actor.optim", "critic.optim", "optim"]
YAML = "defaults: [" + ", ".join(f"optim@{m}: adamw" for m in MOUNTS) + ", _self_]\n"
ACTOR = "actor_rollout_ref.actor.optim"

# Written with the node they were found with, then tried at every mount.
BUILT = {
    "qwen3 vl fsdp": [
        "optim.lr=2e-5",
        "optim.lr_warmup_steps_ratio=0.01",
        "optim.weight_decay=0.1",
        "optim.betas=[0.9,0.95]",
        "optim.clip_grad=1.0",
        "optim.min_lr_ratio=0.1",
        "optim.warmup_style=cosine",
    ],
    "class by name": ["optim.optimizer=AdamW"],
    "warmup ratio": ["optim.lr_warmup_steps_ratio=0.1"],
    "warmup ratio of search r1": ["optim.lr_warmup_steps_ratio=0.285"],
    "entropy recipe": [
        "optim.lr=1e-6",
        "optim.weight_decay=0",
        "optim.lr_scheduler_type=constant",
    ],
    "prime recipe": ["optim.lr=1e-6", "optim.grad_clip=10.0"],
    "retool recipe": ["optim.lr=2e-6"],
    "flowrl recipe": ["optim.warmup_style='constant'"],
    "torchao": [
        "optim.optimizer_impl=torchao.optim",
        "optim.optimizer=_AdamW",
        "optim.override_optimizer_config={bf16_stochastic_round:true}",
    ],
    "torchao 8 bit": [
        "optim.optimizer=AdamW8bit",
        "optim.optimizer_impl=torchao.optim",
    ],
    "bitsandbytes": [
        "optim.optimizer_impl=bitsandbytes.optim",
        "optim.optimizer=AdamW8bit",
    ],
    "bitsandbytes paged": [
        "optim.optimizer_impl=bitsandbytes.optim",
        "optim.optimizer=PagedAdamW8bit",
    ],
    "foreach, added twice over": ["++optim.override_optimizer_config={foreach: false}"],
    "foreach": ["optim.override_optimizer_config={foreach: false}"],
    "fused": ["optim.override_optimizer_config={fused:true}"],
    "eps in braces": ["optim.override_optimizer_config={eps:1e-6}"],
    "eps dotted": ["++optim.override_optimizer_config.eps=1e-6"],
    "legacy sft": [
        "optim.lr=5e-5",
        "optim.betas=[0.9,0.95]",
        "optim.weight_decay=0.01",
        "optim.warmup_steps_ratio=0.05",
        "optim.clip_grad=1.0",
    ],
    "legacy sft schedule": [
        "optim.warmup_steps_ratio=0.1",
        "optim.lr_scheduler=cosine",
    ],
}
REACHES = {
    "torchao": ("bf16_stochastic_round", True),
    "foreach, added twice over": ("foreach", False),
    "foreach": ("foreach", False),
    "fused": ("fused", True),
    "eps in braces": ("eps", 1e-6),
    "eps dotted": ("eps", 1e-6),
    "legacy sft": ("betas", (0.9, 0.95)),
    "entropy recipe": ("weight_decay", 0.0),
}


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("name", BUILT)
def test_it_composes_word_for_word_and_builds(
    name: str,
    mount: str,
    module: nn.Module,
    compose,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    typed = [text.replace("optim.", f"{mount}.", 1) for text in BUILT[name]]
    typed = [text.replace("++optim=", f"++{mount}=") for text in typed]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedKeyWarning)
        cfg = compose(*typed, yaml=YAML)
    node = OmegaConf.select(cfg, mount)
    optimizer = build_optimizer(module, node)
    scheduler = build_lr_scheduler(optimizer, node, total_training_steps=100)
    module(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
    key, value = REACHES.get(name, ("lr", scheduler.get_last_lr()[0]))
    held = optimizer.param_groups[0].get(key, getattr(optimizer, key, None))
    assert held == value


# Keys of Megatron, VeOmni and torchtitan: refused with the name of ours.
REFUSED = {
    "optim.lr_warmup_init=0": "write lr_warmup_init_ratio, a share of lr",
    "optim.min_lr=1e-6": "write min_lr_ratio, a share of lr",
    "optim.lr_min=1e-6": "write min_lr_ratio, a share of lr",
    "optim.min_lr_factor=0.1": "write min_lr_ratio",
    "optim.decay_type=cosine": "write lr_scheduler_type or, for wsd, lr_decay_style",
    "optim.init_lr_ratio=0.1": "write lr_warmup_init_ratio",
    "optim.muon_momentum=0.95": "write override_optimizer_config.momentum",
    "optim.muon_match_adamw_update_rms=True": "adjust_lr_fn=match_rms_adamw",
    "optim.use_layer_wise_distributed_optimizer=True": "has no equal here: remove it",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_a_key_of_another_engine_is_refused_with_ours(typed: str, compose) -> None:
    with pytest.raises(MigrationError, match=REFUSED[typed]):
        compose(typed.replace("optim.", f"{ACTOR}.", 1), yaml=YAML)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            "optim.lr_decay_style=cosine",
            "the schedule constant does not read lr_decay_style",
        ),
        (
            "optim.lr_decay_style=constant",
            "it is the decay part of wsd; the schedule itself is lr_scheduler_type",
        ),
        ("optim.optimizer=muon", "has no muon: did you mean Muon"),
        (
            "+optim.override_optimizer_config.optimizer_offload_fraction=1",
            "AdamW takes no optimizer_offload_fraction",
        ),
        (
            "+optim.override_optimizer_config.use_precision_aware_optimizer=True",
            "AdamW takes no use_precision_aware_optimizer",
        ),
    ],
)
def test_a_value_of_megatron_under_a_key_of_ours_is_refused(
    typed: str, message: str, module: nn.Module, compose
) -> None:
    cfg = compose(typed.replace("optim.", f"{ACTOR}.", 1), yaml=YAML)
    with pytest.raises(ValueError, match=message):
        build_optimizer(module, cfg.actor_rollout_ref.actor.optim)


def test_an_optimizer_of_ones_own_module(
    module: nn.Module, compose, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bf16_optimizer.py").write_text(
        "import torch\n\n\n"
        "class BF16StochasticAdamW(torch.optim.AdamW):\n"
        "    def __init__(self, params, *, rounding=True, **kwargs):\n"
        "        self.rounding = rounding\n"
        "        super().__init__(params, **kwargs)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    typed = [
        "critic.optim.optimizer_impl=bf16_optimizer",
        "critic.optim.optimizer=BF16StochasticAdamW",
        "critic.optim.betas=[0.9,0.98]",
        "critic.optim.override_optimizer_config.rounding=false",
    ]
    optimizer = build_optimizer(module, compose(*typed, yaml=YAML).critic.optim)
    assert (optimizer.rounding, optimizer.defaults["betas"]) == (False, (0.9, 0.98))
    typo = "critic.optim.override_optimizer_config.roundign=false"
    with pytest.raises(UnknownKeyError, match="did you mean rounding"):
        build_optimizer(module, compose(*typed, typo, yaml=YAML).critic.optim)
