"""Composing optimizer nodes with Hydra, as public bug reports met it.

Cases: B83, B85, B86, B87, B89.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
import yaml
from hydra.errors import HydraException
from omegaconf import DictConfig
from torch import nn
from torch.optim import SGD, AdamW

from case_helpers import ACTOR_BASE, Compose
from optim_hydra import (
    ConfigError,
    build_lr_scheduler,
    build_optimizer,
    validate,
)
from optim_hydra.errors import OptimHydraWarning


def summary(module: nn.Module, config: DictConfig) -> dict[str, tuple[Any, ...]]:
    """Return class, lr and weight_decay of each part's optimizer."""
    result = {}
    for part in config:
        optimizer = build_optimizer(module, config[part].optim)
        group = optimizer.param_groups[0]
        result[part] = (type(optimizer), group["lr"], group["weight_decay"])
    return result


def test_B83_misspelt_key(compose: Compose, module: nn.Module) -> None:
    with pytest.raises(HydraException, match="weight_deacy"):
        compose("actor.optim.weight_deacy=0.1")
    config = compose("+actor.optim.weight_deacy=0.1")
    expected = (
        "no field weight_deacy: did you mean weight_decay? @ actor.optim.weight_deacy"
    )
    for action in (lambda: build_optimizer(module, config.actor.optim), validate):
        with pytest.raises(ConfigError) as caught:
            action(config) if action is validate else action()
        assert str(caught.value) == expected


def test_B83_misspelt_node(compose: Compose) -> None:
    config = compose("+actor.optm.lr=1")
    with pytest.warns(OptimHydraWarning) as caught:
        validate(config)
    (warning,) = caught
    assert str(warning.message) == "nobody reads actor.optm: did you mean optim?"


@pytest.mark.parametrize(
    ("override", "near"),
    [
        ("+actor.optim.lrr=1", "lr"),
        ("++critic.optim.beta=[0.9,0.99]", "betas"),
        ("+actor.optim.override_optimiser_config.fused=true", "override_optimizer_"),
        ("+critic.optim.momentum=0.9", "override_optimizer_config"),
    ],
)
def test_B83_kin_more_keys(compose: Compose, override: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(compose(override))
    (problem,) = caught.value.problems
    assert problem.key.startswith(override.partition("=")[0].strip("+")[:16])
    assert near in problem.what


@pytest.mark.parametrize("orphan", ["+optimm.lr=1", "+critic.optin.betas=[0.9,0.99]"])
def test_B83_kin_more_nodes(compose: Compose, orphan: str) -> None:
    config = compose(orphan)
    with pytest.warns(OptimHydraWarning, match="nobody reads .* did you mean optim"):
        validate(config)


def test_B85_group_for_one_part(compose: Compose, module: nn.Module) -> None:
    assert summary(module, compose("optim@critic.optim=sgd")) == {
        "actor": (AdamW, 1e-3, 0.01),
        "critic": (SGD, 1e-2, 0.0),
    }


def test_B85_text_where_a_node_is_due(compose: Compose) -> None:
    with pytest.raises(ConfigError) as caught:
        compose("critic.optim=sgd")
    assert str(caught.value) == (
        "critic.optim=sgd puts text where an optimizer node is due: write"
        " optim@critic.optim=sgd @ critic.optim"
    )


def test_B85_unknown_group(compose: Compose) -> None:
    with pytest.raises(HydraException, match="optim/unknown") as caught:
        compose("optim@critic.optim=unknown")
    listed = str(caught.value).split()
    assert {"adamw", "sgd"} <= set(listed)


@pytest.mark.parametrize(
    ("override", "actor", "critic"),
    [
        ("optim@actor.optim=sgd", (SGD, 1e-2, 0.0), (AdamW, 1e-3, 0.01)),
        ("optim@critic.optim=mine", (AdamW, 1e-3, 0.01), (SGD, 0.5, 0.25)),
    ],
)
def test_B85_kin_the_other_part_and_the_users_group(
    compose: Compose, module: nn.Module, override: str, actor: Any, critic: Any
) -> None:
    mine = "defaults: [sgd, _self_]\nlr: 0.5\nweight_decay: 0.25\n"
    config = compose(override, files={"optim/mine.yaml": mine})
    assert summary(module, config) == {"actor": actor, "critic": critic}


def test_B86_several_optimizers(compose: Compose, module: nn.Module) -> None:
    config = compose(
        "optim@critic.optim=sgd",
        "actor.optim.lr=3e-4",
        "critic.optim.lr=5e-3",
        "+critic.optim.override_optimizer_config.momentum=0.9",
        "actor.optim.lr_warmup_steps=4",
    )
    actor = build_optimizer(module, config.actor.optim)
    critic = build_optimizer(module, config.critic.optim)
    assert (type(actor), type(critic)) == (AdamW, SGD)
    assert critic.param_groups[0]["momentum"] == 0.9
    schedulers = [
        build_lr_scheduler(actor, config.actor.optim),
        build_lr_scheduler(critic, config.critic.optim),
    ]
    assert schedulers[0].base_lrs == [3e-4]
    assert critic.param_groups[0]["lr"] == 5e-3
    for optimizer, scheduler in zip((actor, critic) * 2, schedulers * 2, strict=True):
        optimizer.step()
        scheduler.step()
    assert actor.param_groups[0]["lr"] == pytest.approx(1.5e-4, rel=1e-12)
    assert critic.param_groups[0]["lr"] == 5e-3


def test_B86_kin_three_parts(compose: Compose, module: nn.Module) -> None:
    yaml = (
        "defaults:\n  - optim@actor.optim: adamw\n  - optim@critic.optim: sgd\n"
        "  - optim@reward.optim: adam\n  - _self_\n"
    )
    config = compose("reward.optim.lr=0.25", "critic.optim.lr=0.5", yaml=yaml)
    found = {part: row[:2] for part, row in summary(module, config).items()}
    assert found["actor"] == (AdamW, 1e-3)
    assert found["critic"] == (SGD, 0.5)
    assert found["reward"][1] == 0.25


ACTOR_ONLY = ACTOR_BASE + "actor:\n  optim:\n    lr: 7e-4\n"


def test_B87_own_values_win_over_the_group(compose: Compose, module: nn.Module) -> None:
    config = compose(yaml=ACTOR_ONLY)
    assert (config.actor.optim.lr, config.actor.optim.weight_decay) == (7e-4, 0.01)
    assert summary(module, config) == {"actor": (AdamW, 7e-4, 0.01)}
    assert compose("actor.optim.lr=2e-4", yaml=ACTOR_ONLY).actor.optim.lr == 2e-4


def test_B87_kin_own_values_win_over_a_group_chosen_later(compose: Compose) -> None:
    config = compose("optim@actor.optim=sgd", yaml=ACTOR_ONLY)
    optim = config.actor.optim
    assert (optim.optimizer, optim.lr, optim.weight_decay) == ("SGD", 7e-4, 0.0)


def test_B87_kin_shipped_files_place_self_last() -> None:
    conf = resources.files("optim_hydra.conf")
    files = [*conf.iterdir(), *conf.joinpath("optim").iterdir()]
    shipped = [yaml.safe_load(f.read_text()) for f in files if f.name.endswith("yaml")]
    assert len(shipped) > 2
    for content in shipped:
        assert content["defaults"][-1] == "_self_"


BOTH_SGD = """\
# @package _global_
defaults:
  - override /optim@actor.optim: sgd
  - override /optim@critic.optim: sgd
"""


@pytest.mark.parametrize("name", ["both_sgd", "mine"])
def test_B89_experiment_file(compose: Compose, module: nn.Module, name: str) -> None:
    files = {"experiment/mine.yaml": BOTH_SGD}
    config = compose(f"+experiment={name}", files=files)
    sgd = (SGD, 1e-2, 0.0)
    assert summary(module, config) == {"actor": sgd, "critic": sgd}
    overrides = [f"+experiment={name}", "actor.optim.lr=1e-3"]
    found = summary(module, compose(*overrides, files=files))
    assert found == {"actor": (SGD, 1e-3, 0.0), "critic": sgd}


def test_B89_kin_experiment_with_values(compose: Compose, module: nn.Module) -> None:
    mine = """\
# @package _global_
defaults:
  - override /optim@critic.optim: sgd
actor: {optim: {lr: 5e-5}}
critic: {optim: {lr: 0.5}}
"""
    config = compose("+experiment=mine", files={"experiment/mine.yaml": mine})
    assert summary(module, config) == {
        "actor": (AdamW, 5e-5, 0.01),
        "critic": (SGD, 0.5, 0.0),
    }
