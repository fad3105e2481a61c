"""Renamed keys, as public bug reports met them.

Cases: B98, B100, B101, B108.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from omegaconf import OmegaConf
from torch import nn

from case_helpers import OLD, Compose, exact, rates, yaml_of
from optim_hydra import (
    ConfigError,
    build_lr_scheduler,
    build_optimizer,
    migrate,
)
from optim_hydra.migration import RENAMED_KEYS

TOTAL = "actor.optim.total_training_steps=100"
REMOVED_IN = RENAMED_KEYS["warmup_steps_ratio"].removed_in


@pytest.mark.parametrize(
    ("overrides", "yaml"),
    [
        ([f"{OLD}=0.1", TOTAL], ""),
        ([f"+{OLD}=0.1", TOTAL], ""),
        ([f"++{OLD}=0.1", TOTAL], ""),
        ([], yaml_of("warmup_steps_ratio: 0.1, total_training_steps: 100")),
    ],
)
def test_B98_renamed_warmup_key(
    compose: Compose, module: nn.Module, overrides: list[str], yaml: str
) -> None:
    with pytest.warns(FutureWarning) as caught:
        config = compose(*overrides, yaml=yaml)
    assert rates(module, config, 5) == exact(5e-4)
    (warning,) = caught
    for word in (f"{OLD} is now lr_warmup_steps_ratio", f"removed in {REMOVED_IN}"):
        assert word in str(warning.message)
    assert config.actor.optim.lr_warmup_steps_ratio == 0.1
    assert "warmup_steps_ratio" not in config.actor.optim


def test_B98_kin_every_renamed_key(compose: Compose) -> None:
    values = {"lr_scheduler_type": "cosine", "clip_grad": 0.5}
    for old, renamed in RENAMED_KEYS.items():
        value = values.get(renamed.new, 0.25)
        with pytest.warns(FutureWarning, match=f"critic.optim.{old} is now") as caught:
            config = compose(f"critic.optim.{old}={value}")
        assert len(caught) == 1
        assert config.critic.optim[renamed.new] == value


def test_B98_kin_command_line_wins_over_the_file(compose: Compose) -> None:
    with pytest.warns(FutureWarning) as caught:
        config = compose(f"{OLD}=0.2", yaml=yaml_of("lr_warmup_steps_ratio: 0.1"))
    assert (len(caught), config.actor.optim.lr_warmup_steps_ratio) == (1, 0.2)
    with pytest.warns(FutureWarning) as caught:
        config = compose(
            "actor.optim.lr_warmup_steps_ratio=0.3",
            yaml=yaml_of("warmup_steps_ratio: 0.1"),
        )
    assert (len(caught), config.actor.optim.lr_warmup_steps_ratio) == (1, 0.3)


def test_B98_kin_reference_to_another_file(compose: Compose) -> None:
    mine = "defaults: [adamw, _self_]\nwarmup_steps_ratio: ${ratio}\n"
    files = {"optim/mine.yaml": mine}
    with pytest.warns(FutureWarning) as caught:
        config = compose("optim@actor.optim=mine", yaml="ratio: 0.1\n", files=files)
    assert (len(caught), config.actor.optim.lr_warmup_steps_ratio) == (1, 0.1)


@pytest.mark.parametrize("how", ["override", "file", "node"])
def test_B98_kin_both_keys_in_one_layer(compose: Compose, how: str) -> None:
    new = "actor.optim.lr_warmup_steps_ratio"
    both = "warmup_steps_ratio: 0.1, lr_warmup_steps_ratio: 0.2"
    actions = {
        "override": lambda: compose(f"{OLD}=0.1", f"{new}=0.2"),
        "file": lambda: compose(yaml=yaml_of(both)),
        "node": lambda: migrate(OmegaConf.create(yaml_of(both))),
    }
    with pytest.raises(ConfigError) as caught:
        actions[how]()
    for word in ("warmup_steps_ratio", "lr_warmup_steps_ratio", "0.1", "0.2", OLD):
        assert word in str(caught.value)
    with pytest.warns(FutureWarning) as caught_warnings:
        config = compose(f"{OLD}=0.2", f"{new}=0.2")
    assert len(caught_warnings) == 1
    assert config.actor.optim.lr_warmup_steps_ratio == 0.2


def test_B100_renamed_schedule(compose: Compose, module: nn.Module) -> None:
    text = "total_training_steps: 110, lr_warmup_steps: 10, min_lr_ratio: 0.1"
    with pytest.warns(FutureWarning) as caught:
        config = compose(yaml=yaml_of(f"warmup_style: cosine, {text}"))
    assert rates(module, config, 60) == exact(5.5e-4)
    assert len(caught) == 1
    assert config.actor.optim.lr_scheduler_type == "cosine"


@pytest.mark.parametrize("old", ["warmup_style", "lr_scheduler"])
@pytest.mark.parametrize("how", ["override", "file", "node"])
def test_B100_wrong_value_of_the_old_key(
    compose: Compose, module: nn.Module, how: str, old: str
) -> None:
    yaml = yaml_of(f"{old}: cosin")
    makes = {
        "override": lambda: compose(f"+actor.optim.{old}=cosin"),
        "file": lambda: compose(yaml=yaml),
        "node": lambda: migrate(OmegaConf.create(yaml)),
    }
    with pytest.warns(FutureWarning, match=f"actor.optim.{old} is now"):
        config = makes[how]()
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim)
    text = str(caught.value)
    assert f"actor.optim.{old}" in text
    for word in ("'cosin'", "constant", "cosine", "linear", "wsd"):
        assert word in text


@pytest.mark.parametrize(
    ("old", "value"), [("warmup_steps_ratio", 7), ("grad_clip", -1)]
)
@pytest.mark.parametrize("how", ["override", "file"])
def test_B100_kin_range_of_the_old_key(
    compose: Compose, module: nn.Module, how: str, old: str, value: int
) -> None:
    override = [f"actor.optim.{old}={value}"] if how == "override" else []
    yaml = yaml_of(f"{old}: {value}") if how == "file" else ""
    with pytest.warns(FutureWarning, match=f"actor.optim.{old} is now"):
        config = compose(*override, yaml=yaml)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim)
    assert f"actor.optim.{old}" in str(caught.value)


def test_B100_kin_the_new_name_is_not_called_old(
    compose: Compose, module: nn.Module
) -> None:
    with pytest.warns(FutureWarning):
        compose("actor.optim.warmup_style=cosin")
    config = compose("critic.optim.lr_scheduler_type=cosin")
    with pytest.raises(ConfigError, match="'cosin'") as caught:
        build_optimizer(module, config.critic.optim)
    assert "warmup_style" not in str(caught.value)


BOTH = {
    "actor": {"optim": {"warmup_steps_ratio": 0.1, "total_training_steps": 100}},
    "critic": {"optim": {"warmup_steps_ratio": 0.2, "total_training_steps": 100}},
}


def test_B101_one_warning_for_each_place(compose: Compose, module: nn.Module) -> None:
    stored = OmegaConf.create(BOTH)
    composed = OmegaConf.to_yaml(stored)
    for make in (lambda: stored, lambda: compose(yaml=composed)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            config = make()
            for part in ("actor", "critic") * 3:
                optimizer = build_optimizer(module, config[part].optim)
                build_lr_scheduler(optimizer, config[part].optim)
        texts = sorted(str(warning.message) for warning in caught)
        assert [text.partition(" is now")[0] for text in texts] == [
            "actor.optim.warmup_steps_ratio",
            "critic.optim.warmup_steps_ratio",
        ]
        assert all(issubclass(warning.category, FutureWarning) for warning in caught)
    assert config.actor.optim.lr_warmup_steps_ratio == 0.1
    assert config.critic.optim.lr_warmup_steps_ratio == 0.2


@pytest.mark.parametrize("rank", ["1", "7"])
def test_B101_kin_other_ranks_are_silent(
    monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        assert migrate(BOTH)["actor"]["optim"]["lr_warmup_steps_ratio"] == 0.1
    assert not caught


DEEP = {
    "models": {
        "reward": {
            "heads": [
                {"optim": {"warmup_steps_ratio": 0.1}},
                {"optim": {"lr_warmup_steps_ratio": 0.3}},
            ]
        }
    }
}


@pytest.mark.parametrize("make", [OmegaConf.create, copy.deepcopy])
def test_B108_deep_in_the_tree(make: Callable[[Any], Any]) -> None:
    config = make(DEEP)
    with pytest.warns(FutureWarning) as caught:
        migrated = migrate(config)
    (warning,) = caught
    key = "models.reward.heads[0].optim.warmup_steps_ratio"
    assert key in str(warning.message)
    heads = migrated["models"]["reward"]["heads"]
    assert heads[0]["optim"] == {"lr_warmup_steps_ratio": 0.1}
    assert heads[1]["optim"] == {"lr_warmup_steps_ratio": 0.3}
    assert config == make(DEEP)
    assert migrate(migrated) == migrated


@pytest.mark.parametrize(
    "other", [{"warmup_steps_ratio": 0.1}, {"_target_": "x.Y", "warmup_style": "a"}]
)
def test_B108_kin_only_optimizer_nodes(other: dict[str, Any]) -> None:
    config = {"data": {"warmup_steps_ratio": 0.1}, "list": [[{"optim": other}]]}
    if "_target_" in other:
        assert migrate(config) == config
        return
    with pytest.warns(FutureWarning, match=r"list\[0\]\[0\].optim.warmup_steps_ratio"):
        migrated = migrate(config)
    assert migrated["data"] == config["data"]
    assert migrated["list"] == [[{"optim": {"lr_warmup_steps_ratio": 0.1}}]]
