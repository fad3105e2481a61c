"""The training that both programs do: a small network for about a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from omegaconf import DictConfig
from torch import nn
from torch.optim import Optimizer

__all__ = ["train"]


def train(
    cfg: DictConfig,
    make_optimizer: Callable[[nn.Module], Optimizer],
    log: Callable[[int, dict[str, Any]], object],
) -> float:
    """Fit a random function, log each step, and return the last loss."""
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    model = nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
    )
    inputs = torch.randn(128, 64)
    targets = inputs.square().mean(1, keepdim=True)
    optimizer = make_optimizer(model)
    loss = torch.zeros(())
    for step in range(cfg.num_steps):
        optimizer.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        lr = optimizer.param_groups[0]["lr"]
        log(step, {"loss": loss.item(), "lr.model": lr})
    return loss.item()
