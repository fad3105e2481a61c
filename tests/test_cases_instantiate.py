"""Hydra's instantiate and the parameters, as public bug reports met them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import hydra
import pytest
from hydra.errors import InstantiationException
from omegaconf import DictConfig
from torch import nn
from torch.optim import AdamW, Optimizer

from optim_hydra import ConfigError, build_optimizer

Compose = Callable[..., DictConfig]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Optimizer]:
    """Offer `counted_impl.AdamW` and list the instances that were made of it."""
    instances: list[Optimizer] = []

    class Counted(AdamW):
        def __init__(self, params: Any, lr: float = 1e-3, eps: float = 1e-8) -> None:
            instances.append(self)
            super().__init__(params, lr=lr, eps=eps)

    impl = ModuleType("counted_impl")
    vars(impl)["AdamW"] = Counted
    monkeypatch.setitem(sys.modules, "counted_impl", impl)
    return instances


def refused(module: nn.Module, node: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node)
    return str(caught.value)


def test_b21_parameters_are_set_by_the_library(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    yaml = "actor:\n  optim:\n    override_optimizer_config: {params: []}\n"
    config = compose("actor.optim.optimizer_impl=counted_impl", yaml=yaml)
    text = refused(module, config.actor.optim)
    assert "params is set by the library" in text
    assert text.endswith("@ actor.optim.override_optimizer_config.params")
    with pytest.raises(InstantiationException, match="params is set by the library"):
        hydra.utils.instantiate(config.actor.optim, module)
    assert made == []


def test_b21_instantiating_the_default_config_builds_nothing(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    config = compose("actor.optim.optimizer_impl=counted_impl")
    factory = hydra.utils.instantiate(config.actor)["optim"]
    everything = hydra.utils.instantiate(config)
    assert made == []
    assert not isinstance(factory, Optimizer)
    assert not isinstance(everything["critic"]["optim"], Optimizer)
    assert made == [factory(module)]


@pytest.mark.parametrize("target", ["torch.optim.SGD", "builtins.print"])
def test_b21_kin_no_target_inside_the_further_arguments(
    compose: Compose, module: nn.Module, target: str
) -> None:
    extra = f"{{foreach: {{_target_: {target}}}}}"
    yaml = f"actor:\n  optim:\n    override_optimizer_config: {extra}\n"
    config = compose(yaml=yaml)
    with pytest.raises(InstantiationException, match="_target_ is refused here"):
        hydra.utils.instantiate(config)
    text = refused(module, config.actor.optim)
    assert "_target_ is refused here" in text
    assert text.endswith("@ actor.optim.override_optimizer_config.foreach")
