"""Build before and after `fully_shard`, and step in every state that it has."""

from __future__ import annotations

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer

from group_models import Perceptron
from optim_hydra import build_optimizer, build_optimizers
from optim_hydra.watch import ReplacedParameterError
from two_processes import (
    Results,
    batch,
    loss_of,
    mesh_of,
    model,
    own_half,
    run,
    sharded,
    values_of,
)

CONFIG = {"lr": 1e-2, "clip_grad": 0.1}
SEVERAL = {
    **CONFIG,
    "param_groups": [{"role": "embedding", "optimizer": "SGD", "lr": 0.1}],
}


def backward(network: nn.Module, step: int = 0) -> None:
    loss_of(network, own_half(batch(step))).backward()


def told_by(optimizer: Optimizer) -> str | None:
    """Step; return what the error says."""
    try:
        optimizer.step()
    except ReplacedParameterError as error:
        return str(error)
    return None


def built_before_sharding() -> Results:
    results: Results = {}
    for kind, config in (("one_class", CONFIG), ("several_classes", SEVERAL)):
        network = model()
        optimizer = build_optimizer(network, config)
        backward(sharded(network))
        before = values_of(network)
        told = told_by(optimizer)
        results[kind] = {"told": told, "unchanged": before == values_of(network)}
    return results


def second_module_sharded_too_late() -> Results:
    torch.manual_seed(0)
    modules = {"actor": Perceptron(), "critic": Perceptron()}
    container = build_optimizers(modules, {"actor": CONFIG, "critic": CONFIG})
    fully_shard(modules["critic"], mesh=mesh_of())
    for module in modules.values():
        module(torch.ones(2, 8)).sum().backward()
    before = [values_of(module) for module in modules.values()]
    told = told_by(container)
    after = [values_of(module) for module in modules.values()]
    return {"told": told, "unchanged": before == after}


def built_while_unsharded() -> Results:
    network = sharded(model())
    network.unshard()
    optimizer = build_optimizer(network, CONFIG)
    network.reshard()
    backward(network)
    return {"told": told_by(optimizer)}


def _evaluate(network: nn.Module) -> None:
    network.eval()
    with torch.no_grad():
        loss_of(network, batch(9))
    network.train()


def _plain(network: nn.Module, step: int) -> None:
    backward(network, step)


def _accumulated(network: nn.Module, step: int) -> None:
    for micro in range(3):
        network.set_is_last_backward(micro == 2)
        network.set_requires_gradient_sync(micro == 2)
        backward(network, 3 * step + micro)


def _evaluated_before_the_step(network: nn.Module, step: int) -> None:
    backward(network, step)
    _evaluate(network)


def _gathered_before_the_step(network: nn.Module, step: int) -> None:
    backward(network, step)
    network.unshard()
    for block in network.blocks:
        block.unshard()


LOOPS = (_plain, _accumulated, _evaluated_before_the_step, _gathered_before_the_step)


def built_after_sharding() -> Results:
    """Step in every loop, with and without shards after forward and backward."""
    results: Results = {}
    for loop in LOOPS:
        for reshards in (True, False):
            told = []
            for config in (CONFIG, SEVERAL):
                network = sharded(model(), reshard_after_forward=reshards)
                optimizer = build_optimizer(network, config)
                network.set_reshard_after_backward(reshards)
                for step in range(4):
                    optimizer.zero_grad()
                    loop(network, step)
                    told.append(told_by(optimizer))
                    network.reshard()
                    _evaluate(network)
            results[f"{loop.__name__} {reshards}"] = told
    return results


run(
    built_before_sharding,
    second_module_sharded_too_late,
    built_while_unsharded,
    built_after_sharding,
)
