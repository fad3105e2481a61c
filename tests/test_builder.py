"""One node, every way of building from it, the same optimizer."""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass, field

import pytest
import torch
from hydra.core.config_store import ConfigStore
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import ActorCriticConfig, ConfigError, OptimConfig, build_optimizer
from optim_hydra.errors import OptimHydraWarning, UnknownKeyError, WrongObjectError
from optim_hydra.factory import OptimizerFactory
from optim_hydra.schema import ModuleConfig

RAW = {
    "optimizer": "SGD",
    "lr": 0.1,
    "weight_decay": 0.0,
    "override_optimizer_config": {"momentum": 0.9, "nesterov": True},
}


def group(optimizer: torch.optim.Optimizer) -> dict[str, object]:
    return {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}


def test_every_way_builds_the_same_optimizer(module: nn.Module, compose) -> None:
    cfg = compose(
        "actor.optim.optimizer=SGD",
        "actor.optim.lr=0.1",
        "actor.optim.weight_decay=0",
        "actor.optim.override_optimizer_config={momentum: 0.9, nesterov: true}",
    )
    node = cfg.actor.optim
    built = [
        instantiate(node, module),
        instantiate(node)(module),
        instantiate(cfg).actor.optim(module),
        build_optimizer(module, node),
        build_optimizer(module, OmegaConf.to_object(node)),
        build_optimizer(module, OmegaConf.to_container(node, resolve=True)),
        build_optimizer(module, OmegaConf.create(RAW)),
        build_optimizer(module, OptimConfig(**RAW)),
        build_optimizer(module, RAW),
        build_optimizer(module.named_parameters(), RAW),
    ]
    reference = torch.optim.SGD(
        module.named_parameters(), lr=0.1, momentum=0.9, nesterov=True
    )
    for optimizer in built:
        assert type(optimizer) is torch.optim.SGD
        assert group(optimizer) == group(reference)
        assert optimizer.param_groups[0]["params"] == list(module.parameters())


@pytest.mark.parametrize("partial", [True, False])
def test_a_plain_hydra_node_is_taken_too(module: nn.Module, partial: bool) -> None:
    node = OmegaConf.create(
        {"_target_": "torch.optim.AdamW", "_partial_": partial, "betas": [0.8, 0.9]}
    )
    optimizer = build_optimizer(module, node)
    assert type(optimizer) is torch.optim.AdamW
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.9)
    with pytest.raises(UnknownKeyError, match="AdamW takes no momentum"):
        build_optimizer(module, {"_target_": "torch.optim.AdamW", "momentum": 0.9})


def test_instantiating_the_whole_tree_builds_nothing(compose) -> None:
    tree = instantiate(compose())
    assert isinstance(tree.actor.optim, OptimizerFactory)
    text = "OptimizerFactory(torch.optim.AdamW @ critic.optim)"
    assert repr(tree.critic.optim) == text


def test_a_factory_pickles_and_equals_its_copy(module: nn.Module, compose) -> None:
    factory = instantiate(compose().actor.optim)
    copied = pickle.loads(pickle.dumps(factory))
    assert copied == factory
    assert group(copied(module)) == group(factory(module))


def test_a_factory_knows_its_place_when_it_fails_later(
    module: nn.Module, compose
) -> None:
    factory = instantiate(compose("critic.optim.optimizer=Adamw").critic.optim)
    with pytest.raises(ConfigError, match=r"did you mean AdamW.* @ critic\.optim"):
        factory(module)


@dataclass
class Trainer:
    """A user's own tree with our node in it."""

    reward: ModuleConfig = field(default_factory=ModuleConfig)
    pair: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    optim: OptimConfig = field(default_factory=lambda: OptimConfig(lr=3e-4))


@pytest.mark.parametrize("prefix", ["", "+", "++"])
@pytest.mark.parametrize("form", [".momentum=0.9", "={momentum: 0.9}"])
@pytest.mark.parametrize("mount", ["optim", "reward.optim", "pair.critic.optim"])
def test_it_embeds_in_a_users_dataclass_and_takes_every_override_form(
    module: nn.Module, compose, mount: str, form: str, prefix: str
) -> None:
    ConfigStore.instance().store("trainer", Trainer)
    cfg = compose(
        f"{mount}.optimizer=SGD",
        f"{prefix}{mount}.override_optimizer_config{form}",
        yaml="defaults: [trainer, _self_]\n",
    )
    optimizer = build_optimizer(module, OmegaConf.select(cfg, mount))
    assert optimizer.param_groups[0]["momentum"] == 0.9
    assert cfg.optim.lr == 3e-4


def test_groups_mount_over_a_users_dataclass(module: nn.Module, compose) -> None:
    ConfigStore.instance().store("trainer", Trainer)
    yaml = "defaults: [trainer, /optim@pair.critic.optim: sgd, _self_]\n"
    cfg = compose("optim@pair.critic.optim=lion", yaml=yaml)
    assert type(build_optimizer(module, cfg.pair.critic.optim)).__name__ == "Lion"
    assert cfg.pair.actor.optim.optimizer == "AdamW"


def test_groups_mount_anywhere(module: nn.Module, compose) -> None:
    yaml = """\
defaults:
  - optim@actor.optim: adamw
  - optim@critic.optim: sgd
  - /optim@models.reward.optim: rmsprop
  - _self_
"""
    cfg = compose("models.reward.optim.lr=5e-4", yaml=yaml)
    names = [
        type(build_optimizer(module, node)).__name__
        for node in (cfg.actor.optim, cfg.critic.optim, cfg.models.reward.optim)
    ]
    assert names == ["AdamW", "SGD", "RMSprop"]


def test_a_dropped_value_is_named(module: nn.Module) -> None:
    node = {"optimizer": "SGD", "betas": [0.8, 0.9], "strict": False}
    with pytest.warns(OptimHydraWarning) as caught:
        optimizer = build_optimizer(module, {**node, "_full_key_": "actor.optim"})
    assert type(optimizer) is torch.optim.SGD
    assert [str(w.message) for w in caught] == [
        "SGD takes no betas: dropped, since strict is false @ actor.optim.betas"
    ]


def test_what_was_built_is_logged(
    module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    build_optimizer(module, {"optimizer": "SGD", "_full_key_": "actor.optim"})
    assert caplog.messages == [
        "actor.optim: SGD {'lr': 0.001, 'weight_decay': 0.01}\n"
        "  group 0: SGD, lr 0.001, weight_decay 0.01, 10 numbers in 2 tensors:"
        " weight, bias"
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "the config is of type NoneType"),
        (3, "the config is of type int"),
        (OptimConfig, "the config is of type type"),
    ],
)
def test_the_config_is_a_node(module: nn.Module, wrong: object, message: str) -> None:
    with pytest.raises(WrongObjectError, match=message):
        build_optimizer(module, wrong)


@pytest.mark.parametrize("name", ["closures", "Closure"])
def test_a_promise_that_nobody_knows_is_refused(module: nn.Module, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {}, provides=[name])
    assert str(caught.value) == (
        f"provides={name!r} is none of closure, closure_after_backward,"
        " create_graph, fused_backward, loss_closure, pc_backward, sparse_gradients,"
        " train_eval_modes: did you mean closure, loss_closure?"
    )
