"""Constructor arguments, as public bug reports met them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from omegaconf import DictConfig
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

from optim_hydra import ConfigError, build_optimizer

Compose = Callable[..., DictConfig]
EXTRA = "actor.optim.override_optimizer_config"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Optimizer]:
    """Offer `counted_impl` with two classes and list the instances made of them."""
    instances: list[Optimizer] = []

    class CountedAdamW(AdamW):
        def __init__(self, params: Any, lr: float = 1e-3, fused: Any = None) -> None:
            instances.append(self)
            super().__init__(params, lr=lr, fused=fused)

    class CountedSGD(SGD):
        def __init__(self, params: Any, lr: float = 1e-3, **kwargs: Any) -> None:
            instances.append(self)
            super().__init__(params, lr=lr, **kwargs)

    impl = ModuleType("counted_impl")
    vars(impl).update(AdamW=CountedAdamW, SGD=CountedSGD)
    monkeypatch.setitem(sys.modules, "counted_impl", impl)
    return instances


def yaml_of(optimizer: str, extra: str) -> str:
    return (
        f"actor:\n  optim:\n    optimizer: {optimizer}\n"
        f"    override_optimizer_config: {extra}\n"
    )


def group_of(module: nn.Module, config: DictConfig) -> dict[str, Any]:
    return build_optimizer(module, config.actor.optim).param_groups[0]


def refused(module: nn.Module, config: DictConfig) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim)
    return caught.value


def test_b23_default_betas_for_a_class_without(
    compose: Compose, module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    config = compose("actor.optim.optimizer=SGD", "actor.optim.lr=1e-2")
    optimizer = build_optimizer(module, config.actor.optim)
    group = optimizer.param_groups[0]
    assert type(optimizer) is SGD
    assert (group["lr"], group["weight_decay"], group["momentum"]) == (0.01, 0.01, 0)
    assert "betas" not in group
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    "name", ["Adagrad", "RMSprop", "Adadelta", "Adafactor", "ASGD", "Rprop"]
)
def test_b23_the_class_name_alone(
    compose: Compose,
    module: nn.Module,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    group = group_of(module, compose(f"actor.optim.optimizer={name}"))
    assert group["lr"] == 1e-3
    assert group.get("weight_decay", 0.01) == 0.01
    assert "betas" not in group
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_b23_kin_changed_betas_for_a_class_without(
    compose: Compose, module: nn.Module
) -> None:
    changed = ["actor.optim.optimizer=SGD", "actor.optim.betas=[0.8,0.9]"]
    text = str(refused(module, compose(*changed)))
    assert "SGD takes no betas" in text
    assert text.endswith("@ actor.optim.betas")
    with pytest.warns(UserWarning, match="SGD takes no betas"):
        group = group_of(module, compose(*changed, "actor.optim.strict=false"))
    assert "betas" not in group


def test_b25_unknown_arguments_together(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    extra = "{fussed: true, momentum: 0.9}"
    error = refused(module, compose(yaml=yaml_of("AdamW", extra)))
    first, second = error.problems
    assert "AdamW takes no fussed: did you mean fused?" in first.what
    assert "AdamW takes no momentum" in second.what
    assert [p.key for p in error.problems] == [f"{EXTRA}.fussed", f"{EXTRA}.momentum"]
    for problem in error.problems:
        assert str(problem) in str(error)
    for name in ("amsgrad", "maximize", "foreach", "capturable", "fused"):
        assert name in str(error)
    counted = ["actor.optim.optimizer_impl=counted_impl"]
    refused(module, compose(*counted, yaml=yaml_of("AdamW", extra)))
    assert made == []


@pytest.mark.parametrize(
    ("name", "extra", "said"),
    [
        ("SGD", "{momentun: 0.9}", "SGD takes no momentun: did you mean momentum?"),
        ("SGD", "{Nesterov: true}", "SGD takes no Nesterov: did you mean nesterov?"),
        ("RMSprop", "{beta: 0.9}", "RMSprop takes no beta"),
    ],
)
def test_b25_kin_near_names(
    compose: Compose, module: nn.Module, name: str, extra: str, said: str
) -> None:
    (problem,) = refused(module, compose(yaml=yaml_of(name, extra))).problems
    assert said in problem.what
    assert problem.key.startswith(f"{EXTRA}.")


def test_b25_kin_a_class_that_swallows_any_word(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    impl = "actor.optim.optimizer_impl=counted_impl"
    config = compose(impl, yaml=yaml_of("SGD", "{momentum: 0.9, nesterof: true}"))
    (problem,) = refused(module, config).problems
    assert "nesterof: did you mean nesterov?" in problem.what
    assert made == []
    group = group_of(module, compose(impl, yaml=yaml_of("SGD", "{momentum: 0.9}")))
    assert group["momentum"] == 0.9


def test_b27_every_field_reaches_the_optimizer(
    compose: Compose, module: nn.Module
) -> None:
    config = compose("actor.optim.betas=[0.9,0.95]", "actor.optim.weight_decay=0.1")
    group = group_of(module, config)
    assert (group["betas"], group["weight_decay"]) == ((0.9, 0.95), 0.1)
    assert (group["lr"], group["eps"]) == (1e-3, 1e-8)


@pytest.mark.parametrize("name", ["Adam", "NAdam", "RAdam", "Adamax", "AdamW"])
def test_b27_kin_other_classes_with_betas(
    compose: Compose, module: nn.Module, name: str
) -> None:
    config = compose(
        f"actor.optim.optimizer={name}",
        "actor.optim.lr=2e-3",
        "actor.optim.betas=[0.5,0.75]",
        "actor.optim.eps=1e-5",
        "actor.optim.weight_decay=0",
    )
    group = group_of(module, config)
    assert (group["lr"], group["betas"], group["eps"]) == (2e-3, (0.5, 0.75), 1e-5)
    assert group["weight_decay"] == 0.0
