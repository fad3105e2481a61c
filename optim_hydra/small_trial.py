"""Build a class on small tensors, to see how it behaves before it is called.

It gets the arguments that it will be called with. Random numbers of the program are
left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.needs import need_of

__all__ = ["SmallTrial", "can_be_tried", "on_its_own", "place_for"]


class SmallTrial:
    """An optimizer of small tensors, and gradients that are the same in each trial."""

    def __init__(
        self, cls: type[Optimizer], arguments: Mapping[str, Any], on: torch.device
    ) -> None:
        """Build it.

        Args:
            cls: A class that takes parameters.
            arguments: Its keyword arguments.
            on: Where the tensors are.

        """
        need = need_of(cls)
        self._made = torch.Generator().manual_seed(0)
        self._is_sparse = need.protocol == "sparse_gradients"
        shapes = [(4, 3), (3, 5)] if need.matrices_only else [(4, 3), (3,), (5,)]
        self.starts = [torch.randn(shape, generator=self._made) for shape in shapes]
        self.parameters = [nn.Parameter(start.to(on)) for start in self.starts]
        named = {k: v for k, v in arguments.items() if k not in need.group_keys}
        own = {k: v for k, v in arguments.items() if k in need.group_keys}
        flag = {need.flag: False} if need.flag else {}
        given: Any = self.parameters
        if need.named_parameters:
            given = [(f"{index}", p) for index, p in enumerate(self.parameters)]
        construct: Any = cls
        source = [{"params": given, **flag, **own}] if flag or own else given
        self.optimizer: Any = construct(source, **named)
        if callable(getattr(self.optimizer, "train", None)):
            self.optimizer.train()

    def add_gradients(self, scale: float = 1.0) -> None:
        """Give each tensor a gradient."""
        for parameter in self.parameters:
            gradient = scale * torch.randn(parameter.shape, generator=self._made)
            gradient = gradient.to(parameter.device)
            parameter.grad = gradient.to_sparse(1) if self._is_sparse else gradient

    def moved(self) -> list[Tensor]:
        """Return how far each tensor is from where it was."""
        pairs = zip(self.parameters, self.starts, strict=True)
        return [parameter.detach().cpu() - start for parameter, start in pairs]


def can_be_tried(
    cls: type[Optimizer], arguments: Mapping[str, Any], on: torch.device
) -> bool:
    """Whether a class can be built; where not, the real one tells why."""
    if need_of(cls).accelerator and on.type == "cpu":
        return False
    try:
        with on_its_own(on):
            SmallTrial(cls, arguments, on)
    except Exception:  # noqa: BLE001 - foreign code runs here
        return False
    return True


def place_for(device: torch.device) -> torch.device:
    """Return where a trial for parameters of a device can run."""
    return torch.device("cpu") if device.type == "meta" else device


@contextmanager
def on_its_own(on: torch.device) -> Iterator[None]:
    """Keep a trial's random numbers and gradients to itself."""
    gpus = [on] if on.type == "cuda" else []
    with torch.random.fork_rng(gpus), torch.enable_grad():
        torch.manual_seed(0)
        yield
