"""Rates that fall layer by layer, as public bug reports met them.

Cases: B45.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from case_helpers import Compose, exact, refused, values_of
from optim_hydra import build_lr_scheduler, build_optimizer
from wrapped_models import WRAPPERS, LowRank, parametrized

LAYERS = ["embed.*", "blocks.0.*", "blocks.1.*", "head.*"]
DECAY = f"""\
actor:
  optim:
    lr: 1e-3
    layer_decay: {{factor: 0.5, layers: {LAYERS}}}
"""
COSINE = [
    "actor.optim.lr_scheduler_type=cosine",
    "actor.optim.total_training_steps=110",
    "actor.optim.lr_warmup_steps=10",
    "actor.optim.min_lr_ratio=0.1",
]
RATES = {"embed": 1.25e-4, "blocks.0": 2.5e-4, "blocks.1": 5e-4, "head": 1e-3}


def four_layers() -> nn.ModuleDict:
    torch.manual_seed(0)
    blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    return nn.ModuleDict(
        {"embed": nn.Linear(4, 4), "blocks": blocks, "head": nn.Linear(4, 2)}
    )


def layer_rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    return {
        name.removesuffix(".weight"): lr
        for name, lr in values_of(optimizer, "lr").items()
        if name.endswith(".weight")
    }


def test_B45_each_layer_has_its_rate_right_after_build(compose: Compose) -> None:
    optimizer = build_optimizer(four_layers(), compose(yaml=DECAY).actor.optim)
    assert layer_rates(optimizer) == RATES
    assert len(optimizer.param_groups) == 4


def test_B45_schedules_multiply_each_layers_rate(compose: Compose) -> None:
    optim = compose(*COSINE, yaml=DECAY).actor.optim
    optimizer = build_optimizer(four_layers(), optim)
    scheduler = build_lr_scheduler(optimizer, optim)
    shares = {}
    for step in range(1, 121):
        optimizer.step()
        scheduler.step()
        shares[step] = [lr / RATES[name] for name, lr in layer_rates(optimizer).items()]
    assert shares[60] == exact(*[0.55] * 4)
    assert shares[110] == shares[120] == exact(*[0.1] * 4)


@pytest.mark.parametrize("wrap", ["data_parallel", "distributed", "compiled"])
@pytest.mark.parametrize("layers", [LAYERS, []], ids=["listed", "found"])
def test_B45_kin_wrapped_models(
    wrap: str, layers: list[str], one_process: None
) -> None:
    config = {"layer_decay": {"factor": 0.5, "layers": layers}}
    assert layer_rates(build_optimizer(WRAPPERS[wrap](four_layers()), config)) == RATES


def test_B45_kin_a_transformer_is_taken_apart_by_its_module_list() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    parts = {"emb": nn.Embedding(5, 4), "enc": encoder, "head": nn.Linear(4, 2)}
    config = {"lr": 1.0, "layer_decay": {"factor": 0.5}}
    found = layer_rates(build_optimizer(nn.ModuleDict(parts), config))
    assert (found["emb"], found["head"]) == (0.0625, 1.0)
    norms = [found[f"enc.layers.{index}.norm1"] for index in range(3)]
    assert norms == [0.125, 0.25, 0.5]


def test_B45_kin_rules_and_decay_keep_their_ratios() -> None:
    config = {
        "layer_decay": {"factor": 0.5, "layers": LAYERS},
        "no_decay": ["bias"],
        "param_groups": [
            {"pattern": "blocks.*.weight", "optimizer": "Muon", "lr": 0.04},
            {"pattern": "head.*", "lr_mult": 10},
        ],
    }
    container = build_optimizer(four_layers(), config)
    rates = {"embed": 1.25e-4, "blocks.0": 0.01, "blocks.1": 0.02, "head": 1e-2}
    assert layer_rates(container) == rates
    assert list(values_of(container["Muon"], "lr").values()) == [0.01, 0.02]
    decays = values_of(container, "weight_decay")
    assert {decays[name] for name in decays if name.endswith("bias")} == {0.0}


@pytest.mark.parametrize(
    ("child", "name"),
    [
        (parametrized(nn.Linear(4, 4), "weight", LowRank(4, 4)), "weight.original"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), "weight.original0"),
    ],
    ids=["low_rank", "weight_norm"],
)
def test_B45_kin_a_parametrized_head_is_the_head(child: nn.Module, name: str) -> None:
    model = four_layers()
    model["head"] = child
    config = {"layer_decay": {"factor": 0.5}}
    found = values_of(build_optimizer(model, config), "lr")
    assert found[f"head.parametrizations.{name}"] == 1e-3
    assert (found["embed.weight"], found["blocks.1.weight"]) == (1.25e-4, 5e-4)


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        ("[embed.*,block.0.*,head.*]", "the layer 'block.0.*' matches no parameter"),
        ("[]", "the model has no module lists to find its layers in"),
    ],
)
def test_B45_kin_layers_that_are_not_there_are_refused(
    layers: str, text: str, compose: Compose
) -> None:
    config = compose(f"actor.optim.layer_decay={{factor: 0.5, layers: {layers}}}")
    model = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("embed", "head")})
    told = str(refused(model, config.actor.optim))
    assert text in told
    assert "@ actor.optim.layer_decay.layers" in told


@pytest.mark.parametrize("factor", ["0.0", "1.5", "-0.5"])
def test_B45_kin_a_factor_out_of_range_is_refused(
    factor: str, compose: Compose
) -> None:
    config = compose(f"actor.optim.layer_decay.factor={factor}", yaml=DECAY)
    assert str(refused(four_layers(), config.actor.optim)) == (
        f"{factor} is not a float in (0, 1] @ actor.optim.layer_decay.factor"
    )
