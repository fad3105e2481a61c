"""Work out how much memory the state of an optimizer takes, before training it.

The optimizer takes one step on made-up gradients: on the meta device, where nothing is
allocated or computed, or, where its class can't do that, on the CPU.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.errors import told
from optim_hydra.needs import need_of
from optim_hydra.state_slots import leaves, slots_of
from optim_hydra.state_templates import copied

__all__ = ["StateMemory", "measure_state", "shard_rows", "state_bytes"]

# Numbers that a model may have where its state has to be allocated to be counted.
_LARGEST = 32_000_000


@dataclass(frozen=True)
class StateMemory:
    """What the state of an optimizer takes after its first step."""

    num_parameters: int
    """Elements of all trained tensors, on one rank."""
    num_bytes: int | None
    """Bytes of the tensors in its state, each counted once; None: see `reason`."""
    reason: str = ""

    @property
    def per_parameter(self) -> float | None:
        """Bytes for one number of the parameters."""
        if self.num_bytes is None or not self.num_parameters:
            return None
        return self.num_bytes / self.num_parameters


def measure_state(optimizer: Optimizer, world_size: int = 1) -> StateMemory:
    """Count what an optimizer of parameters on the meta device keeps after one step.

    The step is a copy's; the optimizer itself is left as it is.

    Args:
        optimizer: Built, not stepped.
        world_size: Number of ranks that FSDP2 shards over; rank 0 is counted, whose
            parts are the largest.

    Example:
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer
        >>> with torch.device("meta"):
        ...     module = nn.Linear(4, 2)
        >>> measure_state(build_optimizer(module, {})).num_bytes
        88

    """
    own = [leaf for _, leaf, _ in leaves(optimizer)]
    shapes = [
        shard_rows(slot.parameter.shape, world_size) for slot in slots_of(optimizer)
    ]
    num_parameters = sum(map(math.prod, shapes))
    if any(need_of(type(leaf)).protocol == "closure" for leaf in own):
        reason = "it grows with the losses that the closure returns"
        return StateMemory(num_parameters, None, reason)
    num_bytes, failed = _try(own, world_size, torch.device("meta"))
    if failed and num_parameters > _LARGEST:
        reason = f"its step fails on the meta device ({failed}), and its state is only"
        reason += f" allocated to be counted up to {_LARGEST:,} numbers"
        return StateMemory(num_parameters, None, reason)
    if failed:
        num_bytes, failed = _try(own, world_size, torch.device("cpu"))
    if failed:
        return StateMemory(num_parameters, None, f"its step fails ({failed})")
    return StateMemory(num_parameters, num_bytes)


def shard_rows(shape: torch.Size, world_size: int) -> list[int]:
    """Return the shape of what FSDP2 gives to rank 0: ceil(rows / ranks) of the rows.

    Example:
        >>> shard_rows(torch.Size([10, 3]), 4)
        [3, 3]

    """
    first, *rest = shape or (1,)
    return [-(-first // world_size), *rest] if shape else []


def state_bytes(*optimizers: Optimizer) -> int:
    """Return the bytes of all tensors in the state of optimizers, on this rank.

    What several parameters share, as bitsandbytes' tables of 256 numbers, counts once.
    """
    storages: dict[int, tuple[int, Tensor]] = {}
    for slot in [slot for optimizer in optimizers for slot in slots_of(optimizer)]:
        for value in slot.state().values():
            for tensor in _tensors(value):
                storage = tensor.untyped_storage()
                storages[storage._cdata] = (storage.nbytes(), tensor)
    return sum(num_bytes for num_bytes, _ in storages.values())


def _try(
    optimizers: Sequence[Optimizer], world_size: int, device: torch.device
) -> tuple[int, str]:
    """Return the bytes after a step of copies, or why there is none."""
    try:
        # torchao's steps as they are written: compiling takes half a minute.
        eager = torch.compiler.set_stance("force_eager")
        with torch.random.fork_rng([]), warnings.catch_warnings(), eager:
            warnings.simplefilter("ignore")
            made = [_sharded(optimizer, world_size, device) for optimizer in optimizers]
            for optimizer in made:
                _step(optimizer)
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        return 0, told(error).splitlines()[0]
    return state_bytes(*made), ""


def _sharded(optimizer: Optimizer, world_size: int, device: torch.device) -> Optimizer:
    """Copy an optimizer with the parts of its parameters that rank 0 has."""

    def part(tensor: Tensor) -> Tensor:
        shape = shard_rows(tensor.shape, world_size)
        return torch.zeros(shape, dtype=tensor.dtype, device=device)

    slots = slots_of(optimizer)
    # Numbers as in a model: Prodigy keeps nothing of a parameter that is all zeros.
    memo: dict[int, Any] = {
        id(slot.parameter): nn.Parameter(part(slot.parameter).uniform_())
        for slot in slots
    }
    for slot in slots:
        # Some make state with the optimizer: it is of the whole parameters.
        for value in slot.state().values():
            if isinstance(value, Tensor):
                is_whole = value.shape == slot.parameter.shape
                memo[id(value)] = part(value) if is_whole else value.to(device)
    return copied(optimizer, memo)


def _step(optimizer: Optimizer) -> None:
    """Take one step on made-up gradients."""
    for slot in slots_of(optimizer):
        slot.parameter.grad = torch.rand_like(slot.parameter)
    if callable(getattr(optimizer, "train", None)):
        optimizer.train()  # type: ignore[attr-defined]
    optimizer.step(lambda: torch.zeros(()))  # type: ignore[arg-type, return-value]


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the plain tensors that a value holds."""
    if isinstance(value, Tensor):
        flatten = getattr(value, "__tensor_flatten__", None)
        if flatten is None:
            yield value
        else:
            for name in flatten()[0]:  # quantised, sharded
                yield from _tensors(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _tensors(item)
