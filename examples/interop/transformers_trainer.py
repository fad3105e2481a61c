"""Train a model of transformers with its Trainer and the optimizer of a node.

python examples/interop/transformers_trainer.py optim.lr_scheduler_type=wsd
python examples/interop/transformers_trainer.py resume=true max_steps=80
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import optim_hydra
from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer


@dataclass
class Config:
    """What can be set on the command line."""

    max_steps: int = 60
    resume: bool = False
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            lr=1e-2,
            lr_scheduler_type="cosine",
            no_decay=["bias", "norm"],
            clip_grad=1.0,
        )
    )


class NodeTrainer(Trainer):
    """A Trainer whose optimizer and schedule are those of a node."""

    def __init__(self, *args: Any, node: Any, **kwargs: Any) -> None:
        """Keep the node: the Trainer asks when it has wrapped the model."""
        super().__init__(*args, **kwargs)
        self.node = node

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Build the node's optimizer."""
        if self.optimizer is None:
            self.optimizer = build_optimizer(model or self.model, self.node)
        return self.optimizer

    def create_scheduler(
        self, num_training_steps: int, optimizer: Any = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """Build the node's schedule, whose steps are the Trainer's updates."""
        if self.lr_scheduler is None:
            optimizer = self.optimizer if optimizer is None else optimizer
            schedule = build_lr_scheduler(optimizer, self.node, num_training_steps)
            self.lr_scheduler = schedule
        return self.lr_scheduler


class Counting(Dataset[dict[str, torch.Tensor]]):
    """Sequences that count up from a random number."""

    def __len__(self) -> int:
        """Count the sequences."""
        return 256

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Return one, to be predicted from its beginning."""
        tokens = torch.arange(index % 32, index % 32 + 16) % 32
        return {"input_ids": tokens, "labels": tokens}


@optim_hydra.main(config_name="transformers_trainer")
def main(cfg: DictConfig) -> float:
    """Train a tiny model that nobody has to download, and return its loss."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=2)
    )
    arguments = TrainingArguments(
        "trainer",
        max_steps=cfg.max_steps,
        per_device_train_batch_size=16,
        max_grad_norm=0,  # the node's clip_grad clips; 0 switches the Trainer's off
        save_steps=20,
        use_cpu=True,
        report_to="none",
    )
    trainer = NodeTrainer(model, arguments, train_dataset=Counting(), node=cfg.optim)
    trainer.train(resume_from_checkpoint=cfg.resume or None)
    loss = float(trainer.evaluate(Counting())["eval_loss"])
    print(f"loss {loss:.3f} after {trainer.state.global_step} updates")
    return loss


ConfigStore.instance().store("transformers_trainer", Config)
if __name__ == "__main__":
    main()
