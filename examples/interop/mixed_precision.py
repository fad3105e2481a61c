"""Train in half precision, with torch.amp's scaler in a plain loop.

python examples/interop/mixed_precision.py dtype=float16
"""

from dataclasses import dataclass, field

import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch import nn

import optim_hydra
from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer, grad_norm


@dataclass
class Config:
    """What can be set on the command line."""

    dtype: str = "bfloat16"
    init_scale: float = 2.0**16
    num_updates: int = 60
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=0.03, lr_scheduler_type="cosine", clip_grad=1.0
        )
    )


@optim_hydra.main(config_name="mixed_precision")
def main(cfg: DictConfig) -> float:
    """Train, and return the last loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = build_optimizer(model, cfg.optim)
    scheduler = build_lr_scheduler(optimizer, cfg.optim, cfg.num_updates)
    # Range is what float16 lacks; bfloat16 needs no scaling.
    is_scaled = cfg.dtype == "float16"
    scaler = torch.amp.GradScaler("cpu", cfg.init_scale, enabled=is_scaled)
    loss, num_skipped = torch.zeros(()), 0
    while scheduler.last_epoch < cfg.num_updates:
        inputs = torch.randn(64, 8)
        targets = inputs.sin().sum(dim=1, keepdim=True)
        with torch.autocast("cpu", dtype=getattr(torch, cfg.dtype)):
            outputs = model(inputs)
        loss = nn.functional.mse_loss(outputs.float(), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scale = scaler.get_scale()
        scaler.step(optimizer)  # clip_grad sees gradients that are scaled no more
        scaler.update()
        if scaler.get_scale() < scale:
            num_skipped += 1  # no update, so the schedule stays
        else:
            scheduler.step()
    norm = grad_norm(optimizer)
    print(f"loss {loss.item():.3f}, gradient norm {norm:.3f}, {num_skipped} skipped")
    return loss.item()


ConfigStore.instance().store("mixed_precision", Config)
if __name__ == "__main__":
    main()
