"""Train an actor and a critic, each from its own node, with manual optimization.

python examples/interop/lightning_actor_critic.py critic.optim.optimizer=RMSprop
"""

from typing import Any

import lightning
import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import optim_hydra
from optim_hydra import ActorCriticConfig, build_lr_scheduler, build_optimizer

NUM_EPOCHS = 20


class Bandit(lightning.LightningModule):
    """Which of two arms pays is told by the sign of the first number seen."""

    def __init__(self, cfg: Any) -> None:
        """Keep the tree that has a node for each module."""
        super().__init__()
        self.automatic_optimization = False
        self.cfg = cfg
        self.actor, self.critic = nn.Linear(4, 2), nn.Linear(4, 1)

    def training_step(self, batch: list[Tensor]) -> None:
        """Update the critic, then the actor by its advantage, each at its own rate."""
        (observations,) = batch
        policy = torch.distributions.Categorical(logits=self.actor(observations))
        actions = policy.sample()
        rewards = (actions == (observations[:, 0] > 0)).float()
        values = self.critic(observations).squeeze(1)
        advantages = (rewards - values).detach()
        losses = {
            "actor": -(policy.log_prob(actions) * advantages).mean(),
            "critic": nn.functional.mse_loss(values, rewards),
        }
        pairs = zip(self.optimizers(), self.lr_schedulers(), strict=True)
        for loss, (optimizer, scheduler) in zip(losses.values(), pairs, strict=True):
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
            scheduler.step()
        self.log("reward", rewards.mean(), on_step=False, on_epoch=True)

    def configure_optimizers(self) -> Any:
        """Build one optimizer and one schedule for each module."""
        total = int(self.trainer.estimated_stepping_batches)
        optimizers, schedulers = [], []
        for name in ("actor", "critic"):
            node = self.cfg[name].optim
            optimizers.append(build_optimizer(getattr(self, name), node))
            schedulers.append(build_lr_scheduler(optimizers[-1], node, total))
        return optimizers, schedulers


@optim_hydra.main(config_name="lightning_actor_critic")
def main(cfg: DictConfig) -> float:
    """Train, and return the mean reward of the last epoch."""
    lightning.seed_everything(0, verbose=False)
    observations = torch.randn(256, 4)
    loader = DataLoader(TensorDataset(observations), batch_size=32)
    trainer = lightning.Trainer(max_epochs=NUM_EPOCHS, accelerator="cpu", logger=False)
    trainer.fit(Bandit(cfg), loader)
    reward = float(trainer.callback_metrics["reward"])
    print(f"mean reward {reward:.3f}")
    return reward


CONFIG = ActorCriticConfig()
CONFIG.actor.optim.lr = CONFIG.critic.optim.lr = 0.03
ConfigStore.instance().store("lightning_actor_critic", CONFIG)
if __name__ == "__main__":
    main()
