"""One optimizer for each named module, and one optimizer for several modules."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn
from torch.optim import SGD, AdamW

from optim_hydra import (
    ActorCriticConfig,
    ConfigError,
    OptimConfig,
    OptimizersContainer,
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
)
from optim_hydra.errors import WrongObjectError

COSINE = {"lr_scheduler_type": "cosine", "min_lr_ratio": 0.1}


def pair() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"actor": nn.Linear(4, 2), "critic": nn.Linear(4, 1)}


def tree(actor: dict[str, Any], critic: dict[str, Any]) -> Any:
    return OmegaConf.create({"actor": {"optim": actor}, "critic": {"optim": critic}})


def step(modules: dict[str, nn.Module], container: OptimizersContainer) -> None:
    container.zero_grad()
    for module in modules.values():
        module(torch.ones(3, 4)).square().sum().backward()
    container.step()


def test_each_module_has_its_class_its_rate_and_its_schedule() -> None:
    modules = pair()
    config = tree(
        {"lr": 1e-3, "total_training_steps": 4, **COSINE},
        {"optimizer": "SGD", "lr": 1e-2, "lr_scheduler_type": "linear"},
    )
    container = build_optimizers(modules, config, total_training_steps=2)
    assert container.names == ["actor", "critic"]
    assert [type(inner) for inner in container] == [AdamW, SGD]
    assert container["critic"].param_groups[0]["lr"] == 1e-2
    step(modules, container)
    step(modules, container)
    rates = [group["lr"] for group in container.param_groups]
    assert rates == [pytest.approx(5.5e-4), 0.0]


@pytest.mark.parametrize(
    "config",
    [
        ActorCriticConfig(),
        {"actor": OptimConfig(), "critic": {"lr": 1e-3}},
        {"actor": {"optim": {}}, "critic": {"optim": OptimConfig()}},
        OmegaConf.structured(ActorCriticConfig),
    ],
    ids=["dataclass", "nodes", "dicts", "config"],
)
def test_the_config_is_a_tree_or_a_mapping_of_nodes(config: object) -> None:
    container = build_optimizers(pair(), config)
    assert [type(inner) for inner in container] == [AdamW, AdamW]


def test_a_plain_node_of_hydra_has_no_schedule() -> None:
    config = tree({"_target_": "torch.optim.SGD", "lr": 0.1}, {})
    container = build_optimizers(pair(), config)
    assert list(container.lr_schedulers) == ["critic"]


def test_every_problem_of_every_module_comes_in_one_error() -> None:
    modules = pair()
    modules["critic"].requires_grad_(False)
    modules["extra"] = nn.Linear(2, 2)
    config = tree({"lr": -1}, {"lr_scheduler_type": "linear"})
    with pytest.raises(ConfigError) as caught:
        build_optimizers(modules, config)
    assert str(caught.value) == (
        "3 problems:\n"
        "  - the config has no node for this module (there are actor, critic) @ extra\n"
        "  - -1 is not a finite float >= 0 @ actor.optim.lr\n"
        "  - nothing to train in the module Linear: 2 parameters, all 2 frozen: set"
        " requires_grad before building @ critic.optim"
    )


def test_a_schedule_without_a_total_is_found_before_anything_is_built() -> None:
    modules = pair()
    rule = {"pattern": "bias", "freeze": True}
    config = tree({"param_groups": [rule]}, {"lr_scheduler_type": "linear"})
    with pytest.raises(ConfigError) as caught:
        build_optimizers(modules, config)
    assert str(caught.value) == (
        "the schedule linear needs the number of steps in all: set it, or pass it from"
        " the trainer @ critic.optim.total_training_steps"
    )
    assert all(p.requires_grad for p in modules["actor"].parameters())


def test_a_parameter_of_two_modules_is_refused() -> None:
    modules = pair()
    modules["critic"].weight = modules["actor"].weight
    with pytest.raises(ConfigError) as caught:
        build_optimizers(modules, ActorCriticConfig())
    assert str(caught.value) == (
        "weight belongs to actor too, and both optimizers would update it: build one"
        " for both modules, build_optimizer({'actor': ..., 'critic': ...}, node) @"
        " critic"
    )
    optimizer = build_optimizer(modules, {"param_groups": [{"pattern": "critic.*"}]})
    names = [name for group in optimizer.param_groups for name in group["param_names"]]
    assert sorted(names) == ["actor.bias", "actor.weight", "critic.bias"]


def test_the_schedules_are_advanced_once_a_step_and_by_nobody_else() -> None:
    config = tree({"total_training_steps": 10, **COSINE}, {})
    container = build_optimizers(pair(), config)
    for optimizer in (container, container["actor"]):
        with pytest.raises(ConfigError) as caught:
            build_lr_scheduler(optimizer, config.actor.optim)
        assert str(caught.value) == (
            "the container advances its schedules at each of its steps:"
            " container.lr_schedulers has them @ actor.optim.lr_scheduler_type"
        )


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))]
)
def test_a_copy_goes_on_by_itself(duplicate) -> None:
    modules = pair()
    container = build_optimizers(
        modules, tree({"total_training_steps": 10, **COSINE}, {})
    )
    step(modules, container)
    twin = duplicate(container)
    twin.step()
    assert twin.lr_schedulers["actor"].last_epoch == 2
    assert container.lr_schedulers["actor"].last_epoch == 1
    assert twin.param_groups[0]["lr"] < container.param_groups[0]["lr"]


def test_a_container_is_restored_by_names() -> None:
    config = tree(
        {
            "total_training_steps": 10,
            **COSINE,
            "param_groups": [{"pattern": "weight", "optimizer": "Muon"}],
        },
        {"optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}},
    )
    modules = pair()
    container = build_optimizers(modules, config)
    for _ in range(3):
        step(modules, container)
    saved = pickle.loads(pickle.dumps(container.state_dict()))
    twins = copy.deepcopy(modules)
    restored = build_optimizers(twins, config)
    restored.load_state_dict(saved)
    for _ in range(2):
        step(modules, container)
        step(twins, restored)
    for name, module in modules.items():
        for ours, theirs in zip(
            module.parameters(), twins[name].parameters(), strict=True
        ):
            assert torch.equal(ours, theirs)
    parts = {key.split(".")[1] for key in saved if "." in key}
    assert parts == {"actor", "critic"}


@pytest.mark.parametrize(
    ("modules", "config", "message"),
    [
        ({}, {}, "the first argument holds no named modules"),
        (nn.Linear(2, 2), {}, "the first argument holds no named modules"),
        ({"a": nn.Linear(2, 2)}, 3, "the config is of type int: give the tree"),
    ],
    ids=["empty", "one module", "no config"],
)
def test_wrong_objects_are_refused(modules, config, message: str) -> None:
    with pytest.raises(WrongObjectError, match=message):
        build_optimizers(modules, config)
