"""build_optimizer builds from verl's own config objects what verl would have built."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import build_optimizer
from optim_hydra.container import OptimizersContainer
from optim_hydra.errors import TargetError
from verl_configs import FSDPOptimizerConfig

CLASSES = {
    "AdamW": ("torch.optim", {}),
    "Adam": ("torch.optim", {"betas": (0.8, 0.9), "weight_decay": 0.0}),
    "NAdam": ("torch.optim", {"override_optimizer_config": {"momentum_decay": 1e-3}}),
    "Adamax": ("torch.optim", {"override_optimizer_config": {"betas": [0.5, 0.6]}}),
    "SGD": ("torch.optim", {"override_optimizer_config": {"momentum": 0.9}}),
    "RMSprop": ("torch.optim", {"override_optimizer_config": {"lr": 1.0}}),
    "Lion": ("lion_pytorch", {"lr": 1e-4}),
    "AdamW8bit": ("bitsandbytes.optim", {"override_optimizer_config": {"eps": 1e-6}}),
    "Lion8bit": ("bitsandbytes.optim", {}),
}


def as_verl(module: nn.Module, config: FSDPOptimizerConfig) -> dict[str, Any]:
    """Return the settings by verl's rule: lr and decay, betas by name, extra."""
    arguments: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay}
    if "adam" in config.optimizer.lower():
        arguments["betas"] = config.betas
    arguments.update(config.override_optimizer_config or {})
    cls = getattr(importlib.import_module(config.optimizer_impl), config.optimizer)
    return settings(cls(module.parameters(), **arguments))


def settings(optimizer: Any) -> dict[str, Any]:
    (group,) = optimizer.param_groups
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in group.items()
        if key not in ("params", "param_names")
    }


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("form", ["object", "node"])
def test_it_has_the_settings_that_verl_gives(
    name: str, form: str, module: nn.Module
) -> None:
    impl, given = CLASSES[name]
    config = FSDPOptimizerConfig(
        optimizer=name,
        optimizer_impl=impl,
        clip_grad=float("1e6"),
        **given,
        _target_="verl.workers.config.FSDPOptimizerConfig",
    )
    node = OmegaConf.create({"actor": {"optim": dict(config)}}).actor.optim
    built = build_optimizer(module, config if form == "object" else node)
    inner = built.optimizers[0] if isinstance(built, OptimizersContainer) else built
    assert type(inner).__name__ == name
    assert settings(inner) == as_verl(module, config)


def test_a_class_that_is_not_there_is_told_as_ever(module: nn.Module) -> None:
    config = FSDPOptimizerConfig(optimizer="Lionn", optimizer_impl="lion_pytorch")
    with pytest.raises(TargetError, match="did you mean Lion"):
        build_optimizer(module, config)
