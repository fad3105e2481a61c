"""What is said of rules, layer decay and no_decay that do not fit their model."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from torch import nn

from optim_hydra import ConfigError, build_optimizer
from optim_hydra.errors import OptimHydraWarning, UnknownKeyError

RULES = "actor.optim.param_groups"


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def config(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"_full_key_": "actor.optim", "param_groups": list(rules), **fields}


TORCHAO = {"optimizer_impl": "torchao.optim", "optimizer": "_AdamW"}
ROUND = {"bf16_stochastic_round": True}
ROWS: dict[str, tuple[dict[str, Any], type[ConfigError], str]] = {
    "a name far off": (
        config({"pattern": "embeding*", "weight_decay": 0.0}),
        ConfigError,
        "pattern 'embeding*' matches no parameter (names here are 0.weight, 0.bias,"
        f" 1.weight and 3 more) @ {RULES}[0]",
    ),
    "a name nearby": (
        config({"pattern": "0.wieght", "lr": 1}),
        ConfigError,
        "pattern '0.wieght' matches no parameter: did you mean 0.weight, 2.weight,"
        f" 1.weight? @ {RULES}[0]",
    ),
    "a regex": (
        config({"regex": "biass$", "lr": 1}),
        ConfigError,
        "regex 'biass$' matches no parameter: did you mean 2.bias, 1.bias, 0.bias? @"
        f" {RULES}[0]",
    ),
    "a module type": (
        config({"module_type": "LayerNrm", "lr": 1}),
        ConfigError,
        "module_type 'LayerNrm' matches no parameter: did you mean LayerNorm? @"
        f" {RULES}[0]",
    ),
    "a role": (
        config({"role": "embedding", "lr": 1}),
        ConfigError,
        "role 'embedding' matches no parameter (roles here are 1d, bias, head, hidden,"
        f" norm) @ {RULES}[0]",
    ),
    "dimensions": (
        config({"ndim": 3, "lr": 1}),
        ConfigError,
        "ndim 3 matches no parameter (parameters here have 1, 2 dimensions) @"
        f" {RULES}[0]",
    ),
    "a rule below a wider one": (
        config({"pattern": "0.*", "lr": 1}, {"pattern": "0.bias", "lr": 2}),
        ConfigError,
        "all of the parameters that it matches (0.bias) fall under param_groups[0]"
        f" already: move this rule up @ {RULES}[1]",
    ),
    "too few": (
        config({"pattern": "*.bias", "lr": 1, "expect": 5}),
        ConfigError,
        f"pattern '*.bias' matches 3 parameters (expect: 5) @ {RULES}[0]",
    ),
    "everything frozen": (
        config({"pattern": "*", "freeze": True}),
        ConfigError,
        "nothing to train in the module Sequential: 6 parameters, all 6 frozen, 6 of"
        " them by a freeze rule @ actor.optim",
    ),
    "no decay in the class": (
        config(optimizer="Rprop", no_decay=["bias"]),
        UnknownKeyError,
        "Rprop takes no weight_decay: no_decay has no effect @ actor.optim.no_decay",
    ),
    "for the whole optimizer only": (
        config({"pattern": "0.*", "override_optimizer_config": ROUND}, **TORCHAO),
        ConfigError,
        "_AdamW takes bf16_stochastic_round for all of its parameters only: set it in"
        f" the node @ {RULES}[0].override_optimizer_config.bf16_stochastic_round",
    ),
    "a value that the class refuses": (
        config(
            {
                "pattern": "0.*",
                "override_optimizer_config": {"momentum": -1.0},
            },
            optimizer="SGD",
        ),
        ConfigError,
        "torch.optim.sgd.SGD refuses its arguments: ValueError: Invalid momentum value:"
        f" -1 @ {RULES}[0].override_optimizer_config.momentum",
    ),
    "an argument": (
        config({"pattern": "0.*", "override_optimizer_config": {"momentun": 0.9}}),
        UnknownKeyError,
        "AdamW takes no momentun (it takes lr, betas, eps, weight_decay, amsgrad,"
        " maximize, foreach, capturable, differentiable, fused) @"
        f" {RULES}[0].override_optimizer_config.momentun",
    ),
    "a field among the arguments": (
        config({"pattern": "0.*", "override_optimizer_config": {"lr": 0.9}}),
        ConfigError,
        "lr is a field of the rule itself: write it there @"
        f" {RULES}[0].override_optimizer_config.lr",
    ),
    "a layer": (
        config(layer_decay={"factor": 0.5, "layers": ["0.*", "3.*"]}),
        ConfigError,
        "the layer '3.*' matches no parameter (names here are 0.weight, 0.bias,"
        " 1.weight and 3 more) @ actor.optim.layer_decay.layers[1]",
    ),
    "no layers to find": (
        config(layer_decay={"factor": 0.5}),
        ConfigError,
        "the model has no module lists to find its layers in: list them, the first one"
        " first @ actor.optim.layer_decay.layers",
    ),
    "one rate for all": (
        config(
            {"pattern": "0.*", "lr": 0.5},
            optimizer="Prodigy",
            optimizer_impl="prodigyopt",
        ),
        ConfigError,
        "Prodigy wants one lr for all of its parameters, not 0.001, 0.5: set one"
        f" in the node @ {RULES}",
    ),
    "fields of the node": (
        config({"pattern": "0.*", "clip_grad": 1.0, "lr_scale": 2, "optimzer": "SGD"}),
        UnknownKeyError,
        "3 problems:\n"
        "  - no field clip_grad in a rule: it holds for the whole node @"
        f" {RULES}[0].clip_grad\n"
        f"  - no field lr_scale: write lr_mult @ {RULES}[0].lr_scale\n"
        "  - no field optimzer: did you mean optimizer, optimizer_impl? @"
        f" {RULES}[0].optimzer",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_wrong_rule(row: str) -> None:
    given, error, message = ROWS[row]
    module = net()
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, given)
    assert str(caught.value) == message
    assert type(caught.value) is error
    assert all(parameter.requires_grad for parameter in module.parameters())


@pytest.mark.parametrize(
    "row", ["a name far off", "a rule below a wider one", "a layer"]
)
def test_without_strict_it_is_a_warning(row: str) -> None:
    given, _, message = ROWS[row]
    with pytest.warns(OptimHydraWarning) as caught:
        optimizer = build_optimizer(net(), {**given, "strict": False})
    assert [str(warning.message) for warning in caught] == [message]
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 6


def test_a_rule_for_frozen_parameters_only_is_a_warning() -> None:
    module = net()
    module[0].requires_grad_(False)
    with pytest.warns(OptimHydraWarning) as caught:
        optimizer = build_optimizer(module, config({"pattern": "0.*", "lr": 1.0}))
    assert [str(warning.message) for warning in caught] == [
        f"the rule matches frozen parameters only (0.weight, 0.bias) @ {RULES}[0]"
    ]
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    ("source", "rule", "message"),
    [
        (
            lambda: list(net().named_parameters()),
            {"module_type": "Linear", "lr": 1.0},
            "module_type can't be told from bare parameters: give the module itself,"
            f" build_optimizer(module, config) @ {RULES}[0].module_type",
        ),
        (
            lambda: list(net().parameters()),
            {"pattern": "*.bias", "lr": 1.0},
            "pattern can't be told from bare parameters: give the module itself,"
            f" build_optimizer(module, config) @ {RULES}[0].pattern",
        ),
        (
            lambda: [{"params": list(net().parameters()), "lr": 0.1}],
            {"ndim": 1, "lr": 1.0},
            "the program gives parameter groups, and so does the config: keep one @"
            f" {RULES}",
        ),
    ],
    ids=["named", "bare", "grouped"],
)
def test_what_only_a_module_can_tell(source, rule, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(source(), config(rule))
    assert str(caught.value) == message


def test_bare_parameters_are_grouped_by_their_shape() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = config({"ndim": 1, "lr": 0.5}, no_decay=["1d"])
        optimizer = build_optimizer(list(net().parameters()), given)
    shapes = [
        (g["lr"], g["weight_decay"], len(g["params"])) for g in optimizer.param_groups
    ]
    assert shapes == [(0.001, 0.01, 2), (0.5, 0.0, 4)]
