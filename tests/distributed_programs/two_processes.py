"""What the programs of this folder share: data, training, and the way out."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from group_models import LENGTH, VOCABULARY, gpt
from optim_hydra import assignment_report, build_optimizer, grad_norm

NUM_STEPS = 3
Results = dict[str, Any]


def run(*scenarios: Callable[[], Results]) -> None:
    """Run scenarios in every process, and write what they return to a file of each."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    results = {scenario.__name__: _outcome(scenario) for scenario in scenarios}
    path = Path(sys.argv[1]) / f"{dist.get_rank()}.json"
    path.write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    # torch 2.13 sometimes aborts while the interpreter tears sharded objects down.
    os._exit(0)


def _outcome(scenario: Callable[[], Results]) -> Results:
    try:
        return scenario()
    # What torch raises for a checkpoint is no Exception.
    except (Exception, CheckpointException):  # noqa: BLE001 - the test shows it
        return {"error": traceback.format_exc()}


def mesh_of(name: str = "shard") -> DeviceMesh:
    """Return a mesh of all processes."""
    return init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=(name,))


def model() -> nn.Module:
    """Return a model in double precision, so that rounding hides nothing."""
    return gpt().double()


def sharded(whole: nn.Module, **options: Any) -> nn.Module:
    """Shard each block and what is left, in place."""
    mesh = mesh_of()
    for block in whole.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(whole, mesh=mesh, **options)


def batch(step: int, num_rows: int = 4) -> Tensor:
    """Return the same tokens in every process, for inputs and targets."""
    generator = torch.Generator().manual_seed(step)
    return torch.randint(VOCABULARY, (num_rows, LENGTH + 1), generator=generator)


def own_half(tokens: Tensor) -> Tensor:
    """Return the rows that this process trains on."""
    return tokens[dist.get_rank() :: dist.get_world_size()]


def loss_of(network: nn.Module, tokens: Tensor) -> Tensor:
    logits = network(tokens[:, :-1]).flatten(0, 1)
    return nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())


def train(network: nn.Module, optimizer: Optimizer, *, alone: bool) -> list[float]:
    """Take some steps; return the norm that each has clipped by."""
    norms = []
    for step in range(NUM_STEPS):
        optimizer.zero_grad()
        tokens = batch(step)
        loss_of(network, tokens if alone else own_half(tokens)).backward()
        if isinstance(network, FSDPModule):
            average_plain_gradients(network)
        optimizer.step()
        norms.append(grad_norm(optimizer))
    return norms


def average_plain_gradients(network: nn.Module) -> None:
    """Average what `fully_shard` was told to leave alone."""
    for parameter in network.parameters():
        gradient = parameter.grad
        if gradient is not None and not isinstance(gradient, DTensor):
            dist.all_reduce(gradient)
            gradient /= dist.get_world_size()


def values_of(network: nn.Module) -> list[float]:
    """Return all numbers of a model, gathered from the processes."""
    whole = [
        p.full_tensor() if isinstance(p, DTensor) else p for p in network.parameters()
    ]
    return torch.cat([tensor.detach().flatten() for tensor in whole]).tolist()


def groups_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return which class trains what with which values; sharding leaves that as it is.

    How many numbers of a tensor this process has is left out.
    """
    keys = ("class", "lr", "weight_decay", "rule", "names")
    rows = assignment_report(optimizer).rows
    return [{key: row[key] for key in keys} for row in rows]


def compared(
    config: dict[str, Any],
    wrap: Callable[[nn.Module], nn.Module],
    gather: Callable[[nn.Module], list[float]] = values_of,
) -> Results:
    """Train one model in one process and in two, on the same data."""
    results: Results = {"start": values_of(model())}
    for kind, network in (("alone", model()), ("together", wrap(model()))):
        optimizer = build_optimizer(network, config)
        norms = train(network, optimizer, alone=kind == "alone")
        results[kind] = {
            "groups": groups_of(optimizer),
            "norms": norms,
            "values": gather(network) if kind == "together" else values_of(network),
        }
    return results
