"""Two towers of one shape, each with its optimizer: what a checkpoint may mix up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from optim_hydra import ConfigError, OptimizersContainer, build_optimizers
from saved_training import bits, bits_of, train

LINEAR = {"lr_scheduler_type": "linear", "total_training_steps": 10}
SCHEDULED = {"actor": {"lr": 1e-3, **LINEAR}, "critic": {"lr": 1e-2, **LINEAR}}


class Both(nn.Module):
    """Two towers of the same shape on the same input."""

    def __init__(self, parts: dict[str, nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([part(x) for part in self.parts.values()])


def towers() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"actor": nn.Linear(4, 2), "critic": nn.Linear(4, 2)}


def trained_pair(config: Any) -> tuple[dict[str, nn.Module], OptimizersContainer]:
    parts = towers()
    container = build_optimizers(parts, config)
    train(Both(parts), container, range(2))
    return parts, container


def all_of(container: OptimizersContainer) -> list[Any]:
    """Return the bits of a container and of its schedules."""
    schedules = [bits(s.state_dict()) for s in container.lr_schedulers.values()]
    return [bits_of(container), schedules]


def refused(container: OptimizersContainer, saved: Any) -> str:
    before = all_of(container)
    with pytest.raises(ConfigError) as caught:
        container.load_state_dict(saved)
    assert all_of(container) == before
    return str(caught.value)
