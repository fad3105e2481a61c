"""Train on several processes, with DDP or sharded by FSDP2.

torchrun --nproc-per-node 2 examples/interop/distributed_loop.py
torchrun --nproc-per-node 2 examples/interop/distributed_loop.py strategy=fsdp2
"""

import os
from dataclasses import dataclass, field

import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import optim_hydra
from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer, grad_norm


@dataclass
class Config:
    """What can be set on the command line."""

    strategy: str = "ddp"
    num_steps: int = 60
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=0.03, lr_scheduler_type="cosine", no_decay=["bias"], clip_grad=1.0
        )
    )


def wrapped(model: nn.Sequential, strategy: str) -> nn.Module:
    """Spread a model over the processes, if there are several."""
    if not distributed.is_initialized():
        return model
    if strategy == "ddp":
        return DistributedDataParallel(model)
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer)
    fully_shard(model)
    return model


@optim_hydra.main(config_name="distributed_loop")
def main(cfg: DictConfig) -> float:
    """Train, and return the last loss over all processes."""
    rank, world_size = (
        int(os.environ.get(k, d)) for k, d in (("RANK", 0), ("WORLD_SIZE", 1))
    )
    if world_size == 1:
        return train(cfg, rank, world_size)
    distributed.init_process_group("gloo")
    try:
        return train(cfg, rank, world_size)
    finally:  # the model, which holds the process group, is gone by now
        distributed.destroy_process_group()


def train(cfg: DictConfig, rank: int, world_size: int) -> float:
    """Train in one of the processes."""
    torch.manual_seed(0)
    layers = [nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)]
    model = wrapped(nn.Sequential(*layers), cfg.strategy)
    # Built last: wrapping may put other parameters into the model.
    optimizer = build_optimizer(model, cfg.optim)
    scheduler = build_lr_scheduler(optimizer, cfg.optim, cfg.num_steps)
    loss = torch.zeros(())
    for _ in range(cfg.num_steps):
        inputs = torch.randn(64, 8)  # the same on all processes; each takes its share
        mine = inputs.chunk(world_size)[rank]
        targets = mine.sin().sum(dim=1, keepdim=True)
        loss = nn.functional.mse_loss(model(mine), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    mean = loss.detach() / world_size
    if world_size > 1:
        distributed.all_reduce(mean)
    if rank == 0:
        print(f"loss {mean:.5f}, gradient norm {grad_norm(optimizer):.5f}")
    return mean.item()


ConfigStore.instance().store("distributed_loop", Config)
if __name__ == "__main__":
    main()
