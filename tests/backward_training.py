"""Train small models with updates in backward, and compare what comes of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from optim_hydra import build_lr_scheduler, build_optimizer

COSINE = {"lr": 0.1, "lr_scheduler_type": "cosine", "total_training_steps": 12}
MUON = {"param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}


def layers(width: int = 8) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))


def backward(model: nn.Module) -> None:
    model(torch.ones(3, 4)).square().sum().backward()


def train(model: nn.Module, optimizer: Any, scheduler: Any, num_steps: int) -> None:
    for _ in range(num_steps):
        optimizer.zero_grad()
        backward(model)
        optimizer.step()
        scheduler.step()


def trained(node: dict[str, Any], num_steps: int = 8) -> tuple[Any, Any, Any]:
    model = layers()
    optimizer = build_optimizer(model, {**COSINE, **node})
    scheduler = build_lr_scheduler(optimizer, {**COSINE, **node})
    train(model, optimizer, scheduler, num_steps)
    return model, optimizer, scheduler


def same(first: Any, second: Any) -> bool:
    """Whether two pieces of saved state are one, bit for bit."""
    if isinstance(first, Tensor):
        return torch.equal(first, second) and first.dtype == second.dtype
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            same(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    return same(first.state_dict(), second.state_dict())
