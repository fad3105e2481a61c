"""Train with a compiled step, under a schedule that compiles nothing anew.

python examples/interop/compiled_step.py optim.optimizer=NAdam
"""

from dataclasses import dataclass, field

import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch import nn

import optim_hydra
from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer


@dataclass
class Config:
    """What can be set on the command line."""

    num_steps: int = 60
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=0.03, lr_scheduler_type="cosine", clip_grad=1.0, compile_step=True
        )
    )


@optim_hydra.main(config_name="compiled_step")
def main(cfg: DictConfig) -> float:
    """Train, and return the last loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = build_optimizer(model, cfg.optim)
    scheduler = build_lr_scheduler(optimizer, cfg.optim, cfg.num_steps)
    torch._dynamo.utils.counters.clear()
    loss = torch.zeros(())
    for _ in range(cfg.num_steps):
        inputs = torch.randn(64, 8)
        targets = inputs.sin().sum(dim=1, keepdim=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    num_graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    print(f"loss {loss.item():.4f}, {num_graphs} graphs compiled")
    return loss.item()


ConfigStore.instance().store("compiled_step", Config)
if __name__ == "__main__":
    main()
