"""Build optimizers for the parts of a model as torchtitan's spec functions do.

python examples/interop/torchtitan_specs.py 'optim.no_decay=[bias,norm]'
python examples/interop/torchtitan_specs.py form=class
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

import optim_hydra
from optim_hydra import (
    OptimConfig,
    OptimizersContainer,
    build_lr_scheduler,
    build_optimizer,
)


@dataclass
class Config:
    """What can be set on the command line."""

    form: str = "node"
    num_steps: int = 60
    folder: str = "titan"
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=0.03,
            lr_scheduler_type="wsd",
            lr_warmup_steps=6,
            zero_indexed_step=False,
            param_groups=[{"role": "hidden", "ndim": 2, "optimizer": "Muon"}],
        )
    )


def build_optimizers(
    model_parts: list[nn.Module], cfg: Any
) -> OptimizersContainer[Any]:
    """Build one container for all parts: by a node, or by a class and its arguments."""
    if cfg.form == "class":
        arguments = {"lr": cfg.optim.lr, "betas": (0.9, 0.95), "weight_decay": 0.1}
        return OptimizersContainer(model_parts, torch.optim.AdamW, arguments)
    optimizer = build_optimizer(model_parts, cfg.optim)
    if isinstance(optimizer, OptimizersContainer):  # of several classes
        return optimizer
    return OptimizersContainer.of({"optimizer": optimizer})


def build_lr_schedulers(
    optimizers: OptimizersContainer[Any], cfg: Any, training_steps: int
) -> LRScheduler:
    """Build one schedule for all of their groups."""
    return build_lr_scheduler(optimizers, cfg.optim, training_steps)


@optim_hydra.main(config_name="torchtitan_specs")
def main(cfg: DictConfig) -> float:
    """Go on from what is in the folder, if anything, and return the last loss."""
    torch.manual_seed(0)
    hidden = [nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()]
    whole = nn.Sequential(*hidden, nn.Linear(32, 1))
    model_parts = [whole[:2], whole[2:]]
    optimizers = build_optimizers(model_parts, cfg)
    lr_schedulers = build_lr_schedulers(optimizers, cfg, cfg.num_steps)
    states: dict[str, Any] = {
        "model": whole.state_dict(),
        "optimizer": optimizers,
        "lr_scheduler": lr_schedulers,
    }
    if Path(cfg.folder).exists():
        dcp.load(states, checkpoint_id=cfg.folder, no_dist=True)
    loss = torch.zeros(())
    while lr_schedulers.last_epoch < cfg.num_steps:
        inputs = torch.randn(64, 8)
        outputs = inputs
        for part in model_parts:
            outputs = part(outputs)
        loss = nn.functional.mse_loss(outputs, inputs.sin().sum(dim=1, keepdim=True))
        optimizers.zero_grad()
        loss.backward()
        optimizers.step()
        lr_schedulers.step()
        if lr_schedulers.last_epoch == cfg.num_steps // 2:
            dcp.save(states, checkpoint_id=cfg.folder, no_dist=True)
    print(f"loss {loss.item():.3f}, {optimizers}")
    return loss.item()


ConfigStore.instance().store("torchtitan_specs", Config)
if __name__ == "__main__":
    main()
