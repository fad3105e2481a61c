"""Train a tiny model in the loop that a class asks for, and see whether it learns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from optim_hydra.needs import Need

__all__ = ["LOOPS", "Task", "falls", "make_task", "train"]

_SEED = 20
_FALL = 0.02


@dataclass(frozen=True)
class Task:
    """A model and its loss: 64 points of a linear map, or a table of embeddings."""

    model: nn.Module
    inputs: Tensor
    targets: Tensor

    def loss(self) -> Tensor:
        """Return the mean squared error over all points."""
        return nn.functional.mse_loss(self.model(self.inputs), self.targets)


def make_task(need: Need) -> Task:
    """Return a new task, the same each time, that a class with this need can do."""
    torch.manual_seed(_SEED)
    if need.protocol == "sparse_gradients":
        table = nn.Embedding(8, 4, sparse=True)
        return Task(table, torch.arange(8), torch.randn(8, 4) * 3)
    model = nn.Sequential(nn.Linear(8, 4, bias=not need.matrices_only))
    inputs, weight = torch.randn(64, 8), torch.randn(4, 8)
    return Task(model, inputs, inputs @ weight.T + 1.5)


def _plain(task: Task, optimizer: Any) -> None:
    optimizer.zero_grad()
    task.loss().backward()
    optimizer.step()


def _create_graph(task: Task, optimizer: Any) -> None:
    optimizer.zero_grad()
    task.loss().backward(create_graph=True)
    optimizer.step()


def _closure_of(task: Task, optimizer: Any) -> Callable[[], Tensor]:
    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = task.loss()
        loss.backward()
        return loss

    return closure


def _closure(task: Task, optimizer: Any) -> None:
    optimizer.step(_closure_of(task, optimizer))


def _closure_after_backward(task: Task, optimizer: Any) -> None:
    closure = _closure_of(task, optimizer)
    closure()
    optimizer.step(closure)


def _loss_closure(task: Task, optimizer: Any) -> None:
    optimizer.zero_grad()
    loss = task.loss()
    loss.backward()
    optimizer.step(lambda: loss)


def _pc_backward(task: Task, optimizer: Any) -> None:
    optimizer.zero_grad()
    errors = (task.model(task.inputs) - task.targets).square()
    optimizer.pc_backward([errors[:32].mean(), errors[32:].mean()])
    optimizer.step()


def _fused_backward(task: Task, optimizer: Any) -> None:
    optimizer.fused_backward(task.loss(), optimizer.param_groups[0]["lr"])


# Protocol -> one step of a loop that keeps it; see `optim_hydra.needs.PROTOCOLS`.
LOOPS: dict[str, Callable[[Task, Any], None]] = {
    "": _plain,
    "closure": _closure,
    "closure_after_backward": _closure_after_backward,
    "create_graph": _create_graph,
    "fused_backward": _fused_backward,
    "loss_closure": _loss_closure,
    "pc_backward": _pc_backward,
    "sparse_gradients": _plain,
    "train_eval_modes": _plain,
}


def train(task: Task, optimizer: Any, protocol: str, steps: int) -> list[float]:
    """Take steps; return the loss before and after, evaluated as the class wants it."""
    losses = [float(task.loss().detach())]
    if protocol == "train_eval_modes":
        optimizer.train()
    for _ in range(steps):
        LOOPS[protocol](task, optimizer)
    if protocol == "train_eval_modes":
        optimizer.eval()
    with torch.no_grad():
        losses.append(float(task.loss()))
    return losses


def falls(losses: list[float]) -> bool:
    """Whether a loss fell by two per cent or more."""
    before, after = losses
    return math.isfinite(after) and after <= before * (1 - _FALL)
