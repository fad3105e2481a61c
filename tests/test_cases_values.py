"""Values and their types, as public bug reports met them.

Cases: B01, B08, B09, B11.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import yaml
from omegaconf import OmegaConf
from torch import nn

from case_helpers import REFUSED, Compose, exact, group_of, node, rates, told
from optim_hydra import (
    ActorCriticConfig,
    ConfigError,
    OptimConfig,
    build_optimizer,
)


def test_B01_scientific_notation_from_any_loader(module: nn.Module) -> None:
    text = 'actor:\n  optim:\n    lr: 1e-4\n    weight_decay: "5e-2"\n'
    loaded = yaml.safe_load(text)
    assert loaded["actor"]["optim"]["lr"] == "1e-4"
    optim = OmegaConf.merge(ActorCriticConfig, loaded).actor.optim
    assert type(optim.lr) is float
    assert (optim.lr, optim.weight_decay) == (1e-4, 0.05)
    group = group_of(module, optim)
    assert (group["lr"], group["weight_decay"]) == (1e-4, 0.05)


def test_B01_text_that_is_no_number(compose: Compose, module: nn.Module) -> None:
    loaded = yaml.safe_load("actor:\n  optim:\n    lr: 'abc'\n")
    for action in (
        lambda: OmegaConf.merge(ActorCriticConfig, loaded),
        lambda: compose(yaml="actor:\n  optim:\n    lr: 'abc'\n"),
        lambda: compose("actor.optim.lr=abc"),
        lambda: build_optimizer(module, OmegaConf.create(loaded).actor.optim),
    ):
        with pytest.raises(REFUSED) as caught:
            action()
        for word in ("actor.optim.lr", "abc", "float"):
            assert word in told(caught.value)


@pytest.mark.parametrize(
    "key",
    ["lr", "weight_decay", "eps", "min_lr_ratio", "lr_warmup_steps_ratio"],
)
def test_B01_kin_every_float_field_reads_numeric_text(key: str) -> None:
    assert getattr(OptimConfig(**{key: "2e-1"}), key) == 0.2
    merged = OmegaConf.merge(OptimConfig, {key: "2e-1"})
    assert type(merged[key]) is float
    assert merged[key] == 0.2
    with pytest.raises(ConfigError) as caught:
        OptimConfig(**{key: "2e-1x"})
    assert str(caught.value) == f"'2e-1x' is not a float @ {key}"


def test_B01_kin_numeric_text_in_the_further_arguments(module: nn.Module) -> None:
    extra = {"momentum": "9e-1"}
    sgd = node(optimizer="SGD", lr="1e-2", override_optimizer_config=extra)
    group = group_of(module, sgd)
    assert (group["lr"], group["momentum"]) == (0.01, 0.9)
    assert type(group["momentum"]) is float


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "-1e-3", "true", "[1e-3]"])
def test_B01_kin_not_a_learning_rate(
    compose: Compose, module: nn.Module, value: str
) -> None:
    with pytest.raises(REFUSED) as caught:
        build_optimizer(
            module, compose(yaml=f"actor: {{optim: {{lr: {value}}}}}\n").actor.optim
        )
    assert "actor.optim.lr" in told(caught.value)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("weight_decay", "write 0.0 to switch decay off"),
        ("lr", "write a number, or ??? for one that must be given"),
    ],
)
def test_B08_null_where_a_number_is_due(
    compose: Compose, module: nn.Module, key: str, hint: str
) -> None:
    with pytest.raises(REFUSED) as caught:
        compose(f"actor.optim.{key}=null")
    assert f"actor.optim.{key}=null" in told(caught.value)
    assert "is not optional" in told(caught.value)
    with pytest.raises(REFUSED) as caught:
        compose(yaml=f"actor: {{optim: {{{key}: null}}}}\n")
    assert f"actor.optim.{key}" in told(caught.value)
    assert "incompatible value 'none' for field of type 'float'" in told(caught.value)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node(**{key: None}))
    expected = f"null is not allowed where a float is due: {hint} @ actor.optim.{key}"
    assert str(caught.value) == expected


def test_B08_null_floor_is_zero(compose: Compose, module: nn.Module) -> None:
    config = compose(
        "actor.optim.min_lr_ratio=null",
        "actor.optim.lr_scheduler_type=cosine",
        "actor.optim.total_training_steps=4",
    )
    assert rates(module, config, 4) == exact(0)


@pytest.mark.parametrize("how", ["override", "file", "python"])
def test_B08_null_further_arguments_are_none(
    compose: Compose, module: nn.Module, how: str
) -> None:
    null = {
        "override": lambda: compose("actor.optim.override_optimizer_config=null"),
        "file": lambda: compose(
            yaml="actor: {optim: {override_optimizer_config: null}}\n"
        ),
        "python": lambda: OmegaConf.merge(
            ActorCriticConfig, {"actor": {"optim": {"override_optimizer_config": None}}}
        ),
    }
    groups = [
        group_of(module, config.actor.optim) for config in (null[how](), compose())
    ]
    assert groups[0] == groups[1]


COUNTS = ["lr_warmup_steps", "total_training_steps"]


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("value", ["1e3", "10.0", "10.5", "True"])
def test_B09_a_count_that_is_not_written_as_one(
    compose: Compose, key: str, value: str
) -> None:
    for action in (
        lambda: compose(f"actor.optim.{key}={value}"),
        lambda: compose(yaml=f"actor: {{optim: {{{key}: {value}}}}}\n"),
    ):
        with pytest.raises(REFUSED) as caught:
            action()
        assert f"actor.optim.{key}" in told(caught.value)
        assert "integer" in told(caught.value)


@pytest.mark.parametrize("key", COUNTS)
def test_B09_underscores_in_a_count(compose: Compose, key: str) -> None:
    for config in (
        compose(f"actor.optim.{key}=1_000"),
        compose(yaml=f"actor: {{optim: {{{key}: 1_000}}}}\n"),
    ):
        assert config.actor.optim[key] == 1000
        assert type(config.actor.optim[key]) is int


@pytest.mark.parametrize("key", COUNTS)
def test_B09_kin_counts_from_python(key: str) -> None:
    for value in (1000, 1e3, 1000.0, "1000", np.int64(1000)):
        count = getattr(OptimConfig(**{key: value}), key)
        assert (count, type(count)) == (1000, int)
    for value in (10.5, True, "ten", -2, [10]):
        with pytest.raises(ConfigError, match=rf" int.* @ {key}$"):
            OptimConfig(**{key: value})


def test_B11_numpy_scalar_becomes_a_float(module: nn.Module) -> None:
    optim = OptimConfig(lr=np.float64(1e-3))
    assert (optim.lr, type(optim.lr)) == (1e-3, float)
    for config in (optim, {"lr": np.float64(1e-3)}):
        saved = build_optimizer(module, config).state_dict()["param_groups"][0]
        assert (saved["lr"], type(saved["lr"])) == (1e-3, float)


def test_B11_tensor_is_refused(module: nn.Module) -> None:
    for action in (
        lambda: OptimConfig(lr=torch.tensor(1e-3)),
        lambda: build_optimizer(module, {"lr": torch.tensor(1e-3)}),
    ):
        with pytest.raises(ConfigError) as caught:
            action()
        assert str(caught.value) == "a Tensor is not a float @ lr"


def test_B11_kin_numpy_elsewhere(module: nn.Module) -> None:
    optim = OptimConfig(
        betas=(np.float64(0.9), np.float32(0.5)),
        override_optimizer_config={"eps": np.float64(1e-6)},
    )
    group = build_optimizer(module, optim).state_dict()["param_groups"][0]
    assert (group["betas"], group["eps"]) == ((0.9, 0.5), 1e-6)
    assert [*map(type, group["betas"]), type(group["eps"])] == [float] * 3
