"""Train with each class on two processes, over a checkpoint and without one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer

from optim_hydra import (
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.needs import PROTOCOLS
from optim_hydra.saved_state import StateError
from saved_training import bits
from two_processes import Results, mesh_of, run

FOLDER = Path(sys.argv[1])
TORCH = sorted(
    name
    for name, value in vars(torch.optim).items()
    if isinstance(value, type)
    and issubclass(value, Optimizer)
    and name not in {"Optimizer", "SparseAdam"}  # no gradient of FSDP2 is sparse
)
MOMENTUM = {"override_optimizer_config": {"momentum": 0.9}}
MUON = {"role": "hidden", "ndim": 2, "optimizer": "Muon", "lr": 0.02}
MIXED = {"param_groups": [MUON], "no_decay": ["bias"], "clip_grad": 0.1}
COSINE = {"lr_scheduler_type": "cosine", "total_training_steps": 8}
PAIR: dict[str, Any] = {
    "actor": {**MIXED, **COSINE},
    "critic": {"optimizer": "SGD", "lr": 0.1, **MOMENTUM},
}


def layers(width: int = 6, *, bias: bool = True) -> nn.Sequential:
    torch.manual_seed(0)
    last = nn.Linear(width, 2, bias=bias)
    return nn.Sequential(
        nn.Linear(4, width, bias=bias), nn.Linear(width, width, bias=bias), last
    )


def sharded(whole: nn.Sequential) -> nn.Module:
    mesh = mesh_of()
    for layer in whole:
        fully_shard(layer, mesh=mesh)
    return fully_shard(whole, mesh=mesh)


@dataclass
class Trained:
    """Modules with the optimizer of all of them."""

    modules: list[nn.Module]
    optimizer: Any
    stateful: bool = False
    """Whether torch calls the optimizer's own `state_dict` and `load_state_dict`."""

    def train(self, steps: Iterable[int]) -> None:
        for step in steps:
            torch.manual_seed(step)
            batch = torch.randn(8, 4)[dist.get_rank() :: 2]

            def closure(batch: torch.Tensor = batch) -> torch.Tensor:
                self.optimizer.zero_grad()
                losses = [module(batch).square().mean() for module in self.modules]
                sum(losses).backward()
                return sum(losses)

            closure()
            self.optimizer.step(closure)

    def state(self, **given: Any) -> dict[str, Any]:
        modules = {f"model {i}": module for i, module in enumerate(self.modules)}
        if self.stateful:
            return {**modules, "optimizer": self.optimizer}
        return {**modules, "optimizer": optimizer_state_dict(self.optimizer, **given)}

    def load(self, folder: Path) -> None:
        state = self.state(templates=True)
        dcp.load(state, checkpoint_id=folder)
        if not self.stateful:
            report = load_optimizer_state_dict(self.optimizer, state["optimizer"])
            assert report.differences == []

    def bits(self) -> dict[str, Any]:
        weights = {
            f"model {i}.{name}": parameter
            for i, module in enumerate(self.modules)
            for name, parameter in module.named_parameters()
        }
        state = self.optimizer.state_dict if self.stateful else None
        flat = state() if state else optimizer_state_dict(self.optimizer)
        return bits({**flat, **weights})


def resumed(name: str, make: Callable[[], Trained]) -> Results:
    """Train five steps in one go, and three and two over a checkpoint."""
    first = make()
    try:
        first.train(range(3))
    except RuntimeError as error:
        dist.barrier()
        return {"told": str(error).splitlines()[0]}
    dcp.save(first.state(), checkpoint_id=FOLDER / name)
    first.train(range(3, 5))

    second = make()
    for module in second.modules:
        for parameter in module.parameters():
            parameter.data.fill_(0.5)
    try:
        second.load(FOLDER / name)
    except StateError as error:
        return {"told": str(error)}
    loaded = second.bits()
    second.train(range(3, 5))
    ours, theirs = first.bits(), second.bits()
    keys = {*ours, *theirs}
    kept = [key for key in keys if key.startswith("state.")]
    return {
        "differing": sorted(key for key in keys if ours.get(key) != theirs.get(key)),
        "stood_still": sorted(
            key for key in keys if "model" in key and loaded[key] == theirs[key]
        ),
        "num_kept": len(kept),
        "kinds": kinds_in(second.optimizer),
    }


def kinds_in(optimizer: Optimizer) -> list[str]:
    """Return the classes of the tensors that this process keeps."""
    values = [v for state in optimizer.state.values() for v in state.values()]
    shards = [getattr(value, "_local_tensor", value) for value in values]
    return sorted({type(shard).__name__ for shard in shards})


def each(
    impl: str, names: Iterable[str], extra: Any = None, **shape: Any
) -> Callable[[], Results]:
    def run_each() -> Results:
        results = {}
        for name in names:
            config = {"optimizer_impl": impl, "optimizer": name, **(extra or {})}
            given = {**shape, "bias": False} if name == "Muon" else shape
            results[name] = resumed(f"{impl}.{name}", lambda: made(config, **given))  # noqa: B023 - it is called here
        return results

    run_each.__name__ = impl
    return run_each


def made(config: Any, **shape: Any) -> Trained:
    module = sharded(layers(**shape))
    return Trained([module], build_optimizer(module, config, provides=PROTOCOLS))


def momentum() -> Results:
    return resumed("momentum", lambda: made({"optimizer": "SGD", **MOMENTUM}))


def muon_and_adamw() -> Results:
    return resumed("muon_and_adamw", lambda: made(MIXED))


def muon_and_adamw_stateful() -> Results:
    def make() -> Trained:
        trained = made(MIXED)
        trained.stateful = True
        return trained

    return resumed("muon_and_adamw_stateful", make)


def actor_and_critic() -> Results:
    """Both modules and the container, schedules and all, in one checkpoint."""

    def make() -> Trained:
        actor, critic = sharded(layers()), sharded(layers(width=5))
        modules = {"actor": actor, "critic": critic}
        return Trained([actor, critic], build_optimizers(modules, PAIR), stateful=True)

    return resumed("actor_and_critic", make)


run(
    each("torch.optim", TORCH),
    each("torchao.optim", ["_AdamW", "AdamW8bit", "AdamW4bit", "AdamWFp8"], width=128),
    each("schedulefree", ["AdamWScheduleFree"]),
    momentum,
    muon_and_adamw,
    muon_and_adamw_stateful,
    actor_and_critic,
)
