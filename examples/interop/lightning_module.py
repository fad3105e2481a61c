"""Train a LightningModule with the optimizer that `optim` describes.

python examples/interop/lightning_module.py optim.optimizer=SGD optim.lr=0.1
python examples/interop/lightning_module.py ckpt_path=checkpoints/32.ckpt
"""

from dataclasses import dataclass, field
from typing import Any

import lightning
import torch
from hydra.core.config_store import ConfigStore
from lightning.pytorch.callbacks import ModelCheckpoint
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import optim_hydra
from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer


@dataclass
class Config:
    """What can be set on the command line."""

    max_steps: int = 64
    ckpt_path: str | None = None
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=0.03, lr_scheduler_type="cosine", lr_warmup_steps=8, clip_grad=1.0
        )
    )


class Regression(lightning.LightningModule):
    """A small network."""

    def __init__(self, optim: Any) -> None:
        """Keep the node: the optimizer is built when the trainer asks for it."""
        super().__init__()
        self.optim = optim
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """Return the loss."""
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.layers(inputs), targets)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self) -> Any:
        """Build optimizer and schedule; one step of it is one update."""
        optimizer = build_optimizer(self, self.optim)
        total = int(self.trainer.estimated_stepping_batches)
        scheduler = build_lr_scheduler(optimizer, self.optim, total)
        each_update = {"scheduler": scheduler, "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": each_update}


def data() -> DataLoader[Any]:
    """Make up a regression that a small network can learn."""
    inputs = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
    targets = inputs.sin().sum(dim=1, keepdim=True)
    return DataLoader(TensorDataset(inputs, targets), batch_size=32)


@optim_hydra.main(config_name="lightning_module")
def main(cfg: DictConfig) -> float:
    """Train, go on from `ckpt_path` if there is one, and return the last loss."""
    lightning.seed_everything(0, verbose=False)
    every = ModelCheckpoint(
        "checkpoints",
        "{step}",
        auto_insert_metric_name=False,
        save_top_k=-1,
        every_n_train_steps=16,
    )
    trainer = lightning.Trainer(
        max_steps=cfg.max_steps, accelerator="cpu", callbacks=[every], logger=False
    )
    trainer.fit(Regression(cfg.optim), data(), ckpt_path=cfg.ckpt_path)
    loss = float(trainer.callback_metrics["loss"])
    print(f"loss {loss:.4f} after {trainer.global_step} updates")
    return loss


ConfigStore.instance().store("lightning_module", Config)
if __name__ == "__main__":
    main()
