"""Which parameter of a real model ends up where: whole tables, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from group_models import gpt, lora, moe, resnet, tied
from optim_hydra import ConfigError, assignment_report, build_optimizer

# (class, lr, weight_decay, rule, names in the order of the model)
Row = tuple[str, float, float, str, list[str]]

MUON = {"role": "hidden", "ndim": 2, "optimizer": "Muon"}
ATTENTION = ["attention.qkv.weight", "attention.out.weight"]
# Of a GPT block: its matrices, its norms and biases.
WEIGHTS = [*ATTENTION, "mlp.0.weight", "mlp.2.weight"]
VECTORS = [
    *("ln_1.weight", "ln_1.bias", "attention.qkv.bias", "attention.out.bias"),
    *("ln_2.weight", "ln_2.bias", "mlp.0.bias", "mlp.2.bias"),
]
FINAL_NORM = ["ln_f.weight", "ln_f.bias"]
EMBEDDINGS = ["token_embedding.weight", "position_embedding.weight"]


def blocks(*names: str) -> list[str]:
    return [f"blocks.{index}.{name}" for index in range(2) for name in names]


def table(model: nn.Module, optimizer: Optimizer) -> list[Row]:
    """Read the report, after checking it against the groups that the step uses."""
    held = [
        (type(inner).__name__, group)
        for inner in getattr(optimizer, "optimizers", [optimizer])
        for group in inner.param_groups
    ]
    rows = assignment_report(optimizer).rows
    assert [group for _, group in held] == optimizer.param_groups
    parameters = dict(model.named_parameters())
    for row, (name, group) in zip(rows, held, strict=True):
        assert row["class"] == name
        assert (row["lr"], row["weight_decay"]) == (group["lr"], group["weight_decay"])
        assert list(row["names"]) == group["param_names"]
        named = [parameters[name] for name in group["param_names"]]
        assert [id(p) for p in named] == [id(p) for p in group["params"]]
        assert row["tensors"] == len(named)
        assert row["numbers"] == sum(p.numel() for p in named)
    assert len({(row["class"], row["group"]) for row in rows}) == len(rows)
    rules = [row["rule"] for row in rows]
    by_rule = ["param_groups" in rule for rule in rules]
    assert by_rule == sorted(by_rule), "the default group comes first"
    keys = ("class", "lr", "weight_decay", "rule")
    return sorted((*(row[key] for key in keys), list(row["names"])) for row in rows)


def built(model: nn.Module, config: dict[str, Any]) -> tuple[Optimizer, list[Row]]:
    optimizer = build_optimizer(model, config)
    return optimizer, table(model, optimizer)


def test_a_gpt_decays_its_matrices_and_slows_its_head() -> None:
    config = {
        "lr": 3e-4,
        "weight_decay": 0.1,
        "no_decay": ["bias", "norm", "embedding"],
        "param_groups": [{"role": "head", "lr_mult": 0.5, "expect": 1}],
    }
    optimizer, rows = built(gpt(), config)
    assert type(optimizer) is torch.optim.AdamW
    undecayed = [*EMBEDDINGS, *blocks(*VECTORS), *FINAL_NORM]
    assert rows == [
        ("AdamW", 1.5e-4, 0.1, "param_groups[0]", ["lm_head.weight"]),
        ("AdamW", 3e-4, 0.0, "no_decay", undecayed),
        ("AdamW", 3e-4, 0.1, "", blocks(*WEIGHTS)),
    ]


# Convolutions and norms of each layer of the network, from the last to the first.
CONVS = ["conv1.weight", "conv2.weight"]
NORMS = ["bn1.weight", "bn1.bias", "bn2.weight", "bn2.bias"]
SHORTCUT = ["downsample.1.weight", "downsample.1.bias"]
WIDENING = ([*CONVS, "downsample.0.weight"], [*NORMS, *SHORTCUT])
RESNET_LAYERS = [
    ("", ["fc.weight"], ["fc.bias"]),
    ("layer4.0.", *WIDENING),
    ("layer3.0.", *WIDENING),
    ("layer2.1.", CONVS, NORMS),
    ("layer2.0.", *WIDENING),
    ("layer1.0.", CONVS, NORMS),
    ("", ["conv1.weight"], ["bn1.weight", "bn1.bias"]),
]


def test_a_resnet_halves_its_rate_from_block_to_block() -> None:
    config = {
        "optimizer": "SGD",
        "lr": 0.1,
        "weight_decay": 5e-4,
        "no_decay": ["bias", "norm"],
        "layer_decay": {"factor": 0.5, "layers": []},
        "override_optimizer_config": {"momentum": 0.9},
    }
    optimizer, rows = built(resnet(), config)
    assert type(optimizer) is torch.optim.SGD
    # The stem, five blocks in four stages, and fc: seven layers.
    rates = [0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125, 0.0015625]
    expected = []
    for lr, (prefix, decayed, undecayed) in zip(rates, RESNET_LAYERS, strict=True):
        expected += [
            ("SGD", lr, 5e-4, "", [prefix + name for name in decayed]),
            ("SGD", lr, 0.0, "no_decay", [prefix + name for name in undecayed]),
        ]
    assert rows == sorted(expected)
    assert {group["momentum"] for group in optimizer.param_groups} == {0.9}


def test_a_mixture_of_experts_gives_muon_its_attention_only() -> None:
    config = {
        "lr": 1e-3,
        "weight_decay": 0.1,
        "no_decay": ["1d"],
        "param_groups": [
            {"pattern": "*.router.*", "lr_mult": 0.25, "expect": 4},
            {**MUON, "lr": 0.02, "expect": 4},
        ],
    }
    optimizer, rows = built(moe(), config)
    assert type(optimizer).__name__ == "OptimizersContainer"
    assert isinstance(optimizer, Optimizer)
    inner = [torch.optim.AdamW, torch.optim.Muon]
    assert [type(part) for part in optimizer.optimizers] == inner
    experts = blocks("moe.experts.w1", "moe.experts.w2")
    undecayed = [*blocks("attn_norm.weight", "mlp_norm.weight"), "ln_f.weight"]
    decayed = ["token_embedding.weight", *experts, "lm_head.weight"]
    weights, biases = blocks("moe.router.weight"), blocks("moe.router.bias")
    assert rows == [
        ("AdamW", 2.5e-4, 0.0, "param_groups[0], no_decay", biases),
        ("AdamW", 2.5e-4, 0.1, "param_groups[0]", weights),
        ("AdamW", 1e-3, 0.0, "no_decay", undecayed),
        ("AdamW", 1e-3, 0.1, "", decayed),
        ("Muon", 0.02, 0.1, "param_groups[1]", blocks(*ATTENTION)),
    ]
    (group,) = optimizer["Muon"].param_groups
    assert group["param_names"] == blocks(*ATTENTION)


def test_a_tied_head_goes_to_adamw_once() -> None:
    config = {
        "weight_decay": 0.1,
        "no_decay": ["embedding"],
        "param_groups": [{**MUON, "expect": 8}],
    }
    optimizer, rows = built(tied(), config)
    assert rows == [
        ("AdamW", 1e-3, 0.0, "no_decay", EMBEDDINGS),
        ("AdamW", 1e-3, 0.1, "", [*blocks(*VECTORS), *FINAL_NORM]),
        ("Muon", 1e-3, 0.1, "param_groups[0]", blocks(*WEIGHTS)),
    ]
    assert len(optimizer.optimizers) == 2


@pytest.mark.parametrize("model", [gpt, tied])
def test_neither_a_head_nor_an_embedding_counts_as_hidden(model) -> None:
    assert build_optimizer(model(), {"param_groups": [{**MUON, "expect": 8}]})
    with pytest.raises(ConfigError):
        build_optimizer(model(), {"param_groups": [{**MUON, "expect": 9}]})


def test_a_rule_finds_a_tied_weight_by_its_other_name() -> None:
    rule = {"pattern": "lm_head.*", "lr_mult": 0.5, "expect": 1}
    _, rows = built(tied(), {"param_groups": [rule]})
    names = [name for name, _ in tied().named_parameters()]
    assert rows == [
        ("AdamW", 5e-4, 0.01, "param_groups[0]", ["token_embedding.weight"]),
        ("AdamW", 1e-3, 0.01, "", names[1:]),
    ]


def test_lora_plus_trains_b_faster_and_leaves_the_frozen_base_out() -> None:
    rule = {"pattern": "*lora_B*", "lr_mult": 16, "expect": 2}
    _, rows = built(lora(), {"lr": 2e-4, "weight_decay": 0.0, "param_groups": [rule]})
    names = "base_model.model.{}.lora_{}.default.weight"
    a, b = ([names.format(layer, x) for layer in ("up", "down")] for x in "AB")
    assert rows == [
        ("AdamW", 2e-4, 0.0, "", a),
        ("AdamW", 3.2e-3, 0.0, "param_groups[0]", b),
    ]
