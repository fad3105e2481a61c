"""What the programs that save and load share: a run, and the bits of what it keeps."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.resume import ResumeReport
from two_processes import batch, loss_of, model, own_half

# Beside the results of each program, so that one loads what another one saved.
FOLDER = Path(sys.argv[1]).parent / "checkpoints"
NUM_ROWS = 6  # of 1, 2 and 3 processes each has as many as the others

CONFIG = {
    "lr": 1e-2,
    "weight_decay": 0.1,
    "no_decay": ["bias", "norm", "embedding"],
    "param_groups": [{"role": "hidden", "ndim": 2, "lr_mult": 0.5}],
    "clip_grad": 0.1,
    "lr_scheduler_type": "cosine",
    "lr_warmup_steps": 2,
    "total_training_steps": 12,
}
PLAIN = {"lr": 1e-2, "weight_decay": 0.1}


@dataclass
class Run:
    """A model in training."""

    network: nn.Module
    optimizer: Optimizer
    scheduler: LRScheduler | None = None
    """None where the optimizer advances its own."""

    def state(self, *, templates: bool = False) -> dict[str, Any]:
        """Return what is saved, or what is loaded into."""
        state = {
            "model": get_model_state_dict(self.network),
            "optimizer": optimizer_state_dict(self.optimizer, templates=templates),
        }
        if self.scheduler is not None:
            state["scheduler"] = self.scheduler.state_dict()
        return state

    def save(self, name: str) -> None:
        """Write a checkpoint."""
        dcp.save(self.state(), checkpoint_id=FOLDER / name)

    def load(self, name: str, *, partial: bool = False, **given: Any) -> ResumeReport:
        """Restore a checkpoint, as examples/resume.py does."""
        state = self.state(templates=True)
        planner = dcp.DefaultLoadPlanner(allow_partial_load=partial)
        dcp.load(state, checkpoint_id=FOLDER / name, planner=planner)
        report = load_optimizer_state_dict(self.optimizer, state["optimizer"], **given)
        set_model_state_dict(self.network, state["model"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        return report

    def train(self, steps: Iterable[int]) -> None:
        """Take steps with the data that belong to each."""
        for step in steps:
            self.optimizer.zero_grad()
            loss_of(self.network, own_half(batch(step, NUM_ROWS))).backward()
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()


def started(
    config: dict[str, Any], wrap: Callable[[nn.Module], nn.Module], fill: float = 0.0
) -> Run:
    """Build a run; the one that loads starts elsewhere than the one that saved."""
    network = model()
    network.blocks = network.blocks[:1]
    for parameter in network.parameters():
        parameter.data += fill
    network = wrap(network)
    optimizer = build_optimizer(network, config)
    return Run(network, optimizer, build_lr_scheduler(optimizer, config, 12))


def digest(value: Any) -> str:
    """Return what is equal for two values where they are the same to the last bit."""
    if not isinstance(value, Tensor):
        return repr(value)
    whole = value.full_tensor() if isinstance(value, DTensor) else value
    raw = whole.detach().contiguous().numpy().tobytes()
    return f"{whole.dtype} {tuple(whole.shape)} {hashlib.sha256(raw).hexdigest()}"


def state_of(optimizer: Optimizer) -> dict[str, str]:
    """Return what is kept for each name and key, gathered from the processes."""
    saved = optimizer_state_dict(optimizer)
    return {k: digest(v) for k, v in saved.items() if k.startswith("state.")}


def settings_of(optimizer: Optimizer) -> dict[str, str]:
    """Return the settings of each name."""
    saved = optimizer_state_dict(optimizer)
    return {k: digest(v) for k, v in saved.items() if k.startswith("param_groups.")}


def all_of(run: Run) -> dict[str, str]:
    """Return the bits of the weights, the state, the settings and the schedule."""
    weights = get_model_state_dict(run.network)
    return {
        **{f"model.{name}": digest(value) for name, value in weights.items()},
        **state_of(run.optimizer),
        **settings_of(run.optimizer),
        "scheduler": repr(run.scheduler and run.scheduler.state_dict()),
    }
