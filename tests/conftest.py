"""Fixtures: compose configs as a user's program does, and leave no trace."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
import pytest
import torch
from omegaconf.basecontainer import BaseContainer
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

import hydra_singletons
import optim_hydra
import world_results
from case_helpers import BASE, Compose, Run, offer
from optim_hydra import rename_notices
from optim_hydra.app import asked_version
from optim_hydra.declared import DECLARED
from warm_python import Warm

ROOT = Path(__file__).parents[1]
# In the processes that tests start: threads gain nothing where two workers run.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """Restore Hydra's singletons, resolvers and registries."""
    registries = (
        BaseContainer._resolvers,
        DECLARED.schedules,
        DECLARED.optimizers,
        DECLARED.builders,
        DECLARED.arguments,
    )
    before = [dict(registry) for registry in registries]
    rename_notices._written.clear()
    with hydra_singletons.restored():
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
        with hydra.initialize_config_dir(str(tmp_path), **asked_version()):
            return optim_hydra.compose("config", list(overrides))

    return run


@pytest.fixture
def run_fresh(tmp_path: Path) -> Run:
    """Run a program in a folder of its own, in an interpreter that starts for it."""

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


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """Start Python once, and import what most programs import."""
    python = Warm()
    yield python
    python.close()


@pytest.fixture
def run_python(tmp_path: Path, warm: Warm, tmp_path_factory) -> Run:
    """Run a program in a folder of its own, in a process that has torch already."""
    written = tmp_path_factory.mktemp("written")

    def run(*args: str, cwd: Path = tmp_path, **env: str):
        every = {**os.environ, "TORCHDYNAMO_DISABLE": "1", **env}
        return warm.run(written, list(args), cwd, every)

    return run


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder of what runs once, whichever of pytest's workers asks."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def found_in(
    shared: Path, warm: Warm
) -> Callable[[str, int, str], list[dict[str, Any]]]:
    """Return what each of some processes has found in a scenario of a program."""
    return functools.partial(world_results.read, shared, warm)


@pytest.fixture(scope="session")
def found(found_in) -> Callable[[str, str], tuple[dict[str, Any], ...]]:
    """Return what both processes of a program have found in a scenario."""
    return lambda program, scenario: tuple(found_in(program, 2, scenario))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Optimizer]:
    """Offer `counted_impl` with two classes and list the instances made of them."""
    instances: list[Optimizer] = []

    class CountedAdamW(AdamW):
        def __init__(
            self, params: Any, lr: float = 1e-3, eps: float = 1e-8, fused: Any = None
        ) -> None:
            instances.append(self)
            super().__init__(params, lr=lr, eps=eps, fused=fused)

    class CountedSGD(SGD):
        def __init__(self, params: Any, lr: float = 1e-3, **kwargs: Any) -> None:
            instances.append(self)
            super().__init__(params, lr=lr, **kwargs)

    offer(monkeypatch, "counted_impl", AdamW=CountedAdamW, SGD=CountedSGD)
    return instances


@pytest.fixture
def one_process() -> Iterator[None]:
    """Be the only process of a group, for wrappers that spread over processes."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()
