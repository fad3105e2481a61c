"""Fixtures: compose configs as a user's program does, and leave no trace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hydra
import pytest
import torch
from omegaconf import DictConfig
from omegaconf.basecontainer import BaseContainer
from torch import nn

import optim_hydra
from optim_hydra import rename_notices
from optim_hydra.declared import DECLARED

ROOT = Path(__file__).parents[1]
BASE = """\
defaults:
  - optim@actor.optim: adamw
  - optim@critic.optim: adamw
  - _self_
"""

Compose = Callable[..., DictConfig]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _registries(hydra_restore_singletons: None) -> Iterator[None]:
    """Restore Hydra's singletons (its own plugin does), resolvers and registries."""
    registries = (
        BaseContainer._resolvers,
        DECLARED.schedules,
        DECLARED.optimizers,
        DECLARED.arguments,
    )
    before = [dict(registry) for registry in registries]
    rename_notices._written.clear()
    yield
    for registry, items in zip(registries, before, strict=True):
        registry.clear()
        registry.update(items)
    DECLARED.allowed_impls = None


@pytest.fixture
def module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 2)


@pytest.fixture
def compose(tmp_path: Path) -> Compose:
    """Compose a primary config over the base of two modules.

    `compose("actor.optim.lr=1e-3", yaml=..., files={"optim/mine.yaml": ...})`
    """

    def run(*overrides: str, yaml: str = "", files: dict[str, str] | None = None):
        text = yaml if "defaults:" in yaml else BASE + yaml
        for name, content in {"config.yaml": text, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        with hydra.initialize_config_dir(str(tmp_path), version_base=None):
            return optim_hydra.compose("config", list(overrides))

    return run


@pytest.fixture
def run_python(tmp_path: Path) -> Run:
    """Run a program in a folder of its own, as a user would."""

    def run(*args: str, cwd: Path = tmp_path, **env: str):
        return subprocess.run(
            [sys.executable, *args],
            cwd=cwd,
            env={**os.environ, "TORCHDYNAMO_DISABLE": "1", **env},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
