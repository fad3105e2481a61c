"""Constructor arguments, as public bug reports met them.

Cases: B23, B25, B27.
"""

from __future__ import annotations

import logging

import pytest
from torch import nn
from torch.optim import SGD, Optimizer

from case_helpers import EXTRA, Compose, extra_yaml_of, group_of, refused
from optim_hydra import build_optimizer


def test_B23_default_betas_for_a_class_without(
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
def test_B23_the_class_name_alone(
    compose: Compose,
    module: nn.Module,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    group = group_of(module, compose(f"actor.optim.optimizer={name}").actor.optim)
    assert group["lr"] == 1e-3
    assert group.get("weight_decay", 0.01) == 0.01
    assert "betas" not in group
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_B23_kin_changed_betas_for_a_class_without(
    compose: Compose, module: nn.Module
) -> None:
    changed = ["actor.optim.optimizer=SGD", "actor.optim.betas=[0.8,0.9]"]
    text = str(refused(module, compose(*changed).actor.optim))
    assert "SGD takes no betas" in text
    assert text.endswith("@ actor.optim.betas")
    with pytest.warns(UserWarning, match="SGD takes no betas"):
        group = group_of(
            module, compose(*changed, "actor.optim.strict=false").actor.optim
        )
    assert "betas" not in group


def test_B25_unknown_arguments_together(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    extra = "{fussed: true, momentum: 0.9}"
    error = refused(module, compose(yaml=extra_yaml_of("AdamW", extra)).actor.optim)
    first, second = error.problems
    assert "AdamW takes no fussed: did you mean fused?" in first.what
    assert "AdamW takes no momentum" in second.what
    assert [p.key for p in error.problems] == [f"{EXTRA}.fussed", f"{EXTRA}.momentum"]
    for problem in error.problems:
        assert str(problem) in str(error)
    for name in ("amsgrad", "maximize", "foreach", "capturable", "fused"):
        assert name in str(error)
    counted = ["actor.optim.optimizer_impl=counted_impl"]
    refused(module, compose(*counted, yaml=extra_yaml_of("AdamW", extra)).actor.optim)
    assert made == []


@pytest.mark.parametrize(
    ("name", "extra", "said"),
    [
        ("SGD", "{momentun: 0.9}", "SGD takes no momentun: did you mean momentum?"),
        ("SGD", "{Nesterov: true}", "SGD takes no Nesterov: did you mean nesterov?"),
        ("RMSprop", "{beta: 0.9}", "RMSprop takes no beta"),
    ],
)
def test_B25_kin_near_names(
    compose: Compose, module: nn.Module, name: str, extra: str, said: str
) -> None:
    (problem,) = refused(
        module, compose(yaml=extra_yaml_of(name, extra)).actor.optim
    ).problems
    assert said in problem.what
    assert problem.key.startswith(f"{EXTRA}.")


def test_B25_kin_a_class_that_swallows_any_word(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    impl = "actor.optim.optimizer_impl=counted_impl"
    config = compose(impl, yaml=extra_yaml_of("SGD", "{momentum: 0.9, nesterof: true}"))
    (problem,) = refused(module, config.actor.optim).problems
    assert "nesterof: did you mean nesterov?" in problem.what
    assert made == []
    group = group_of(
        module, compose(impl, yaml=extra_yaml_of("SGD", "{momentum: 0.9}")).actor.optim
    )
    assert group["momentum"] == 0.9


def test_B27_every_field_reaches_the_optimizer(
    compose: Compose, module: nn.Module
) -> None:
    config = compose("actor.optim.betas=[0.9,0.95]", "actor.optim.weight_decay=0.1")
    group = group_of(module, config.actor.optim)
    assert (group["betas"], group["weight_decay"]) == ((0.9, 0.95), 0.1)
    assert (group["lr"], group["eps"]) == (1e-3, 1e-8)


@pytest.mark.parametrize("name", ["Adam", "NAdam", "RAdam", "Adamax", "AdamW"])
def test_B27_kin_other_classes_with_betas(
    compose: Compose, module: nn.Module, name: str
) -> None:
    values = ["lr=2e-3", "betas=[0.5,0.75]", "eps=1e-5", "weight_decay=0"]
    overrides = [f"actor.optim.{value}" for value in (f"optimizer={name}", *values)]
    config = compose(*overrides)
    group = group_of(module, config.actor.optim)
    assert (group["lr"], group["betas"], group["eps"]) == (2e-3, (0.5, 0.75), 1e-5)
    assert group["weight_decay"] == 0.0
