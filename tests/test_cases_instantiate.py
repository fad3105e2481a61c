"""Hydra's instantiate and the parameters, as public bug reports met them.

Cases: B21.
"""

from __future__ import annotations

import hydra
import pytest
from hydra.errors import InstantiationException
from torch import nn
from torch.optim import Optimizer

from case_helpers import Compose, refused
from optim_hydra import ConfigError
from optim_hydra.app import asked_version

# Hydra 1.3 wraps what a target raises, 1.4 lets it through.
RAISED = InstantiationException if asked_version() else ConfigError


def test_B21_parameters_are_set_by_the_library(
    compose: Compose, module: nn.Module, made: list[Optimizer]
) -> None:
    yaml = "actor:\n  optim:\n    override_optimizer_config: {params: []}\n"
    config = compose("actor.optim.optimizer_impl=counted_impl", yaml=yaml)
    text = str(refused(module, config.actor.optim))
    assert "params is set by the library" in text
    assert text.endswith("@ actor.optim.override_optimizer_config.params")
    with pytest.raises(RAISED, match="params is set by the library"):
        hydra.utils.instantiate(config.actor.optim, module)
    assert made == []


def test_B21_instantiating_the_default_config_builds_nothing(
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
def test_B21_kin_no_target_inside_the_further_arguments(
    compose: Compose, module: nn.Module, target: str
) -> None:
    extra = f"{{foreach: {{_target_: {target}}}}}"
    yaml = f"actor:\n  optim:\n    override_optimizer_config: {extra}\n"
    config = compose(yaml=yaml)
    with pytest.raises(RAISED, match="_target_ is refused here"):
        hydra.utils.instantiate(config)
    text = str(refused(module, config.actor.optim))
    assert "_target_ is refused here" in text
    assert text.endswith("@ actor.optim.override_optimizer_config.foreach")
