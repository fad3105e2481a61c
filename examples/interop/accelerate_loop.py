"""Train with a loop of accelerate, on any number of processes.

python examples/interop/accelerate_loop.py optim.optimizer=Adamax
torchrun --nproc-per-node 2 examples/interop/accelerate_loop.py
"""

from dataclasses import dataclass, field
from pathlib import Path

import torch
from accelerate import Accelerator
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import optim_hydra
from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer


@dataclass
class Config:
    """What can be set on the command line."""

    num_updates: int = 60
    folder: str = "accelerated"
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=0.03, lr_scheduler_type="cosine", lr_warmup_steps=6, clip_grad=1.0
        )
    )


def data() -> TensorDataset:
    """Make up a regression that a small network can learn."""
    inputs = torch.randn(512, 8, generator=torch.Generator().manual_seed(0))
    return TensorDataset(inputs, inputs.sin().sum(dim=1, keepdim=True))


@optim_hydra.main(config_name="accelerate_loop")
def main(cfg: DictConfig) -> float:
    """Go on from what is in the folder, if anything, and return the last loss."""
    # As it is by default, the schedule would go on once for each process.
    accelerator = Accelerator(
        cpu=True, gradient_accumulation_steps=2, step_scheduler_with_optimizer=False
    )
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = build_optimizer(model, cfg.optim)
    scheduler = build_lr_scheduler(optimizer, cfg.optim, cfg.num_updates)
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, DataLoader(data(), batch_size=32), scheduler
    )
    if Path(cfg.folder).exists():
        accelerator.load_state(cfg.folder)
    loss = torch.zeros(())
    update = scheduler.scheduler.last_epoch
    while update < cfg.num_updates:
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                optimizer.step()
                if accelerator.sync_gradients and not optimizer.step_was_skipped:
                    scheduler.step()
                    update += 1
                optimizer.zero_grad()
            if update == cfg.num_updates:
                break
    accelerator.save_state(cfg.folder)
    mean = float(accelerator.reduce(loss.detach(), "mean"))
    accelerator.print(f"loss {mean:.4f}, rate {scheduler.get_last_lr()[0]:.1e}")
    accelerator.end_training()
    return mean


ConfigStore.instance().store("accelerate_loop", Config)
if __name__ == "__main__":
    main()
