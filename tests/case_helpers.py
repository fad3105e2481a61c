"""What the tests of the reported cases share: types, texts and short helpers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra import ConfigError, build_lr_scheduler, build_optimizer

Compose = Callable[..., DictConfig]
Run = Callable[..., subprocess.CompletedProcess[str]]
# Whatever of the three notices a wrong value first.
REFUSED = (HydraException, OmegaConfBaseException, ConfigError)

EXTRA = "actor.optim.override_optimizer_config"
OLD = "actor.optim.warmup_steps_ratio"

BASE = """\
defaults:
  - optim@actor.optim: adamw
  - optim@critic.optim: adamw
  - _self_
"""
ACTOR_BASE = "defaults:\n  - optim@actor.optim: adamw\n  - _self_\n"
COSINE = """\
actor:
  optim:
    lr: 1e-3
    lr_scheduler_type: cosine
    lr_warmup_steps: 10
    total_training_steps: 110
    min_lr_ratio: 0.1
"""


def yaml_of(fields: str) -> str:
    """Return a config whose actor has these fields, given as `key: value, ...`."""
    return f"actor:\n  optim: {{{fields}}}\n"


def extra_yaml_of(optimizer: str, extra: str) -> str:
    """Return a config of a class and its further arguments, as YAML."""
    return (
        f"actor:\n  optim:\n    optimizer: {optimizer}\n"
        f"    override_optimizer_config: {extra}\n"
    )


def node(**items: Any) -> DictConfig:
    """Return an untyped node, as from a program that knows nothing of the schema."""
    return OmegaConf.create({"actor": {"optim": items}}).actor.optim


def write(folder: Path, **files: str) -> Path:
    """Write files, called by their names with _ for the dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def offer(monkeypatch: pytest.MonkeyPatch, impl: str, **names: object) -> None:
    """Make an importable module that holds these names and nothing else."""
    module = ModuleType(impl)
    vars(module).update(names)
    monkeypatch.setitem(sys.modules, impl, module)


def group_of(module: nn.Module, optim: Any) -> dict[str, Any]:
    """Return the first parameter group of the node's optimizer."""
    return build_optimizer(module, optim).param_groups[0]


def refused(module: nn.Module, optim: Any) -> ConfigError:
    """Return the error that the node's optimizer must end in."""
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, optim)
    return caught.value


def told(error: BaseException | None) -> str:
    """Return what an error and its causes say, in small letters."""
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(texts).lower()


def rates(
    module: nn.Module, config: DictConfig, *steps: int, total: int | None = None
) -> list[float]:
    """Return lr(k) for each k: the rate after k schedule steps."""
    optimizer = build_optimizer(module, config.actor.optim)
    scheduler = build_lr_scheduler(optimizer, config.actor.optim, total)
    found = [optimizer.param_groups[0]["lr"]]
    for _ in range(max(steps)):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
    return [found[step] for step in steps]


def refused_rates(module: nn.Module, config: DictConfig, **given: Any) -> str:
    """Return what the error says that the actor's schedule must end in."""
    with pytest.raises(ConfigError) as caught:
        rates(module, config, 0, **given)
    return str(caught.value)


def exact(*values: float) -> Any:
    """Return what equals these rates up to rounding."""
    return pytest.approx(values, rel=1e-12, abs=1e-18)


def sgd(**fields: Any) -> dict[str, Any]:
    """Return a node of plain gradient descent without decay."""
    return {"optimizer": "SGD", "weight_decay": 0.0, **fields}


def values_of(optimizer: Optimizer, *keys: str) -> dict[str, Any]:
    """Return the name of each parameter with its group's values, or its one value."""
    found: dict[str, Any] = {}
    held: list[Tensor] = []
    for group in optimizer.param_groups:
        assert group["params"], "no group is empty"
        held += group["params"]
        values = tuple(group[key] for key in keys)
        for name in group["param_names"]:
            assert name not in found
            found[name] = values if len(keys) > 1 else values[0]
    assert len({id(parameter) for parameter in held}) == len(held) == len(found)
    return found


def names_by(optimizer: Optimizer, *keys: str) -> dict[Any, list[str]]:
    """Return the names that share each of the values, in the order of their groups."""
    names: dict[Any, list[str]] = {}
    for name, value in values_of(optimizer, *keys).items():
        names.setdefault(value, []).append(name)
    return names


def train_once(optimizer: Optimizer, *modules: nn.Module) -> None:
    """Take one step on the sum of what the modules make of four ones each."""
    optimizer.zero_grad()
    torch.stack([module(torch.ones(3, 4)).sum() for module in modules]).sum().backward()
    optimizer.step()
