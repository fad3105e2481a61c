"""Train under DistributedDataParallel and under the older FSDP class."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.nn.parallel import DistributedDataParallel

from group_models import Block
from optim_hydra import ConfigError, build_optimizer
from two_processes import (
    Results,
    batch,
    compared,
    loss_of,
    model,
    own_half,
    run,
    train,
    values_of,
)

BY_NAME = {
    "lr": 1e-2,
    "weight_decay": 0.1,
    "param_groups": [
        {"pattern": "blocks.*.mlp.*", "lr_mult": 0.5},
        {"regex": "^lm_head", "lr_mult": 2.0},
    ],
}
BY_ROLE = {
    **BY_NAME,
    "param_groups": [{"role": "hidden", "lr_mult": 0.5}],
    "no_decay": ["bias", "norm", "embedding"],
}


def wrapped(
    network: nn.Module, strategy: ShardingStrategy = ShardingStrategy.FULL_SHARD
) -> nn.Module:
    """Wrap each block and the whole in the older class."""
    return FullyShardedDataParallel(
        network,
        auto_wrap_policy=ModuleWrapPolicy({Block}),
        use_orig_params=True,
        sharding_strategy=strategy,
        device_id=torch.device("cpu"),
    )


def gathered(network: nn.Module) -> list[float]:
    with FullyShardedDataParallel.summon_full_params(network):
        return values_of(network)


def data_parallel_by_name() -> Results:
    return compared({**BY_NAME, "clip_grad": 0.1}, DistributedDataParallel)


def data_parallel_by_role() -> Results:
    return compared({**BY_ROLE, "clip_grad": 0.1}, DistributedDataParallel)


def wrappers_segment_in_a_pattern() -> Results:
    rule = {"pattern": "module.blocks.*", "lr_mult": 0.5}
    try:
        build_optimizer(DistributedDataParallel(model()), {"param_groups": [rule]})
    except ConfigError as error:
        return {"told": str(error)}
    return {"told": None}


def fsdp1_by_name() -> Results:
    return compared(BY_NAME, wrapped, gathered)


def fsdp1_with_what_needs_shapes() -> Results:
    return told({**BY_NAME, "no_decay": ["norm", "embedding"]})


def fsdp1_clipped() -> Results:
    return told({**BY_NAME, "clip_grad": 0.1})


def told(config: dict[str, Any]) -> Results:
    try:
        build_optimizer(wrapped(model()), config)
    except ConfigError as error:
        return {"told": str(error)}
    return {"told": None}


def updated_in_backward() -> Results:
    """Refused while it is built, and in the first backward where that came before."""
    node, said = {"step_in_backward": True}, {}
    for kind, wrap in (("ddp", DistributedDataParallel), ("fsdp1", wrapped)):
        try:
            build_optimizer(wrap(model()), node)
        except ConfigError as error:
            said[kind] = str(error)
    network = model()
    optimizer = build_optimizer(network, node)
    before = values_of(network)
    wrapper = DistributedDataParallel(network)
    try:
        loss_of(wrapper, own_half(batch(0))).backward()
    except ConfigError as error:
        said["wrapped later"] = str(error)
    said["unchanged"] = values_of(network) == before and not optimizer.state
    return said


def fsdp1_evaluated_before_each_step() -> Results:
    """Step while whole parameters stand in the modules, and after all was gathered."""
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
        network = wrapped(model(), strategy)
        optimizer = build_optimizer(network, BY_NAME)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(network, own_half(batch(step))).backward()
            with torch.no_grad():
                loss_of(network, own_half(batch(9)))
            optimizer.step()
            gathered(network)
    return {"steps": "taken"}


def fsdp1_built_before_wrapping() -> Results:
    network, other = model(), model()
    optimizer = build_optimizer(network, BY_ROLE)
    network = wrapped(network)
    train(network, optimizer, alone=True)
    train(other, build_optimizer(other, BY_ROLE), alone=True)
    return {"together": gathered(network), "alone": values_of(other)}


run(
    updated_in_backward,
    data_parallel_by_name,
    data_parallel_by_role,
    wrappers_segment_in_a_pattern,
    fsdp1_by_name,
    fsdp1_with_what_needs_shapes,
    fsdp1_clipped,
    fsdp1_evaluated_before_each_step,
    fsdp1_built_before_wrapping,
)
