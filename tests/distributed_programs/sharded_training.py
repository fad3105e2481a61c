"""Train models that `fully_shard` has cut, beside the same models in one process."""

from __future__ import annotations

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard

from group_models import Block
from optim_hydra import ConfigError, build_optimizer, grad_norm
from two_processes import (
    Results,
    batch,
    compared,
    groups_of,
    loss_of,
    mesh_of,
    model,
    own_half,
    run,
    sharded,
)

CONFIG = {
    "lr": 1e-2,
    "weight_decay": 0.1,
    "param_groups": [
        {"role": "hidden", "ndim": 2, "lr_mult": 0.5},
        {"module_type": "LayerNorm", "lr_mult": 2.0},
    ],
    "no_decay": ["bias", "norm", "embedding"],
    "clip_grad": 0.1,
}
EMBEDDINGS_BY_SGD = {"role": "embedding", "optimizer": "SGD", "lr": 0.1}
SEVERAL = {**CONFIG, "param_groups": [EMBEDDINGS_BY_SGD, *CONFIG["param_groups"]]}
MUON = {"role": "hidden", "ndim": 2, "optimizer": "Muon", "lr": 0.02}


def partly_sharded(whole: nn.Module) -> nn.Module:
    plain = [whole.position_embedding.weight, *whole.ln_f.parameters()]
    return sharded(whole, ignored_params=set(plain))


def one_class() -> Results:
    return compared(CONFIG, sharded)


def every_layer_sharded() -> Results:
    def shard_each(whole: nn.Module) -> nn.Module:
        for module in list(whole.modules()):
            if next(module.parameters(recurse=False), None) is not None:
                fully_shard(module, mesh=mesh_of())
        return sharded(whole)

    return compared(CONFIG, shard_each)


def several_classes() -> Results:
    return compared(SEVERAL, sharded)


def plain_beside_sharded() -> Results:
    return compared(CONFIG, partly_sharded)


def several_classes_plain_beside_sharded() -> Results:
    return compared(SEVERAL, partly_sharded)


def two_meshes() -> Results:
    def shard_apart(whole: nn.Module) -> nn.Module:
        fully_shard(whole.blocks[0], mesh=mesh_of("experts"))
        return fully_shard(whole, mesh=mesh_of())

    return compared(CONFIG, shard_apart)


def muon() -> Results:
    return compared({**CONFIG, "param_groups": [MUON]}, sharded)


def scaled_gradients() -> Results:
    norms = {}
    for kind, network in (("alone", model()), ("together", sharded(model()))):
        optimizer = build_optimizer(network, SEVERAL)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        tokens = batch(0) if kind == "alone" else own_half(batch(0))
        scaler.scale(loss_of(network, tokens)).backward()
        scaler.step(optimizer)
        norms[kind] = grad_norm(optimizer)
    return norms


def one_block_of_a_sequence_sharded() -> Results:
    config = {
        "layer_decay": {"factor": 0.5, "layers": []},
        "param_groups": [{"role": "head", "lr_mult": 3.0}],
    }
    results = {}
    for kind in ("alone", "together"):
        layers = [nn.Linear(8, 8), Block(), Block(), nn.Linear(8, 3)]
        network = nn.Sequential(*layers)
        if kind == "together":
            fully_shard(network[1], mesh=mesh_of())
        results[kind] = {"groups": groups_of(build_optimizer(network, config))}
    return results


def updated_in_backward() -> Results:
    """Train shards by updates in backward, beside one process that steps."""
    config = {key: CONFIG[key] for key in CONFIG if key != "clip_grad"}
    results = compared({**config, "step_in_backward": True}, sharded)
    results["alone"] = compared(config, sharded)["alone"]
    network = sharded(model())
    optimizer = build_optimizer(network, {**config, "step_in_backward": True})
    loss_of(network, own_half(batch(0))).backward()
    results["freed"] = all(p.grad is None for p in network.parameters())
    try:
        build_optimizer(partly_sharded(model()), {"step_in_backward": True})
    except ConfigError as error:
        results["told"] = str(error)
    results["updated"] = len(optimizer.state) == len(list(network.parameters()))
    return results


run(
    updated_in_backward,
    one_class,
    every_layer_sharded,
    several_classes,
    plain_beside_sharded,
    several_classes_plain_beside_sharded,
    two_meshes,
    muon,
    scaled_gradients,
    one_block_of_a_sequence_sharded,
)
