"""The modules that people put around a model, and ways to replace its insides."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.utils import parametrize


def compiled(module: nn.Module) -> nn.Module:
    return torch.compile(module, backend="eager")


def compiled_child(module: nn.Module) -> nn.Module:
    module[0] = compiled(module[0])
    return module


def checkpointed_child(module: nn.Module) -> nn.Module:
    module[0] = checkpoint_wrapper(module[0])
    return module


def nested(module: nn.Module) -> nn.Module:
    return compiled(DistributedDataParallel(checkpointed_child(module)))


# Each keeps the names that the bare module's parameters have. Those that spread over
# processes need the fixture `one_process`.
WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "bare": lambda module: module,
    "data_parallel": DataParallel,
    "distributed": DistributedDataParallel,
    "compiled": compiled,
    "compiled_child": compiled_child,
    "checkpointed": checkpoint_wrapper,
    "checkpointed_child": checkpointed_child,
    "nested": nested,
}


class Same(nn.Module):
    """A parametrization that changes nothing but where the parameter is kept."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class LowRank(nn.Module):
    """A parametrization with parameters of its own, as LoRA has it."""

    def __init__(self, num_rows: int, num_columns: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.zeros(num_rows, 1))
        self.b = nn.Parameter(torch.ones(1, num_columns))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.a @ self.b


def parametrized(
    module: nn.Module, name: str, by: nn.Module | None = None
) -> nn.Module:
    parametrize.register_parametrization(module, name, by or Same())
    return module


def three_layers() -> nn.Sequential:
    """Return the model of most cases: two linear layers, a norm between them."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
