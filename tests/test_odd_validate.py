"""Open values and references in a whole config."""

from __future__ import annotations

import pytest
from torch import nn

from optim_hydra import (
    ConfigError,
    build_optimizer,
    migrate,
    validate,
)
from optim_hydra.errors import WrongObjectError


def test_open_values_are_left_to_the_build(module: nn.Module, compose) -> None:
    yaml = "total: ???\nactor: {optim: {total_training_steps: '${total}'}}\n"
    cfg = compose("critic.optim.lr=???", "critic.optim.optimizer=???", yaml=yaml)
    validate(cfg)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, cfg.critic.optim)
    assert [problem.key for problem in caught.value.problems] == [
        "critic.optim.optimizer",
        "critic.optim.lr",
    ]


def test_a_reference_that_leads_nowhere_hides_no_other_problem(compose) -> None:
    cfg = compose("actor.optim.lr=${x.y}", "actor.optim.eps=-1", "critic.optim.lr=-1")
    with pytest.raises(ConfigError) as caught:
        validate(cfg)
    assert [problem.key for problem in caught.value.problems] == [
        "actor.optim.lr",
        "actor.optim.eps",
        "critic.optim.lr",
    ]


def test_classes_can_be_validated_too(compose) -> None:
    cfg = compose(
        "actor.optim.optimizer=Adamw", "critic.optim.optimizer_impl=heavyball"
    )
    validate(cfg)
    with pytest.raises(ConfigError) as caught:
        validate(cfg, classes=True)
    assert len(caught.value.problems) == 2
    with pytest.raises(ConfigError, match=r"@ optim\.lr"):
        validate({"optim": {"lr": -1}})


def test_migrate_takes_no_file_name() -> None:
    with pytest.raises(WrongObjectError, match="not a str"):
        migrate("saved.yaml")


def test_open_classes_and_arguments_are_left_to_the_build(compose) -> None:
    extra = "actor.optim.override_optimizer_config"
    cfg = compose("actor.optim.optimizer=???", f"{extra}.momentum=???")
    validate(cfg, classes=True)
    validate(
        compose("actor.optim.optimizer=SGD", f"{extra}.momentum=???"), classes=True
    )
