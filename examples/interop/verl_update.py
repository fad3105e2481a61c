"""Update an actor and a critic as verl's workers do, from verl's own config objects.

python examples/interop/verl_update.py critic.optim.optimizer=RMSprop

Needs verl. The line that a worker of yours changes is its import:

    from optim_hydra import build_optimizer  # was verl.workers.config.optimizer
"""

import torch
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from torch import nn
from verl.utils.config import omega_conf_to_dataclass

import optim_hydra
from optim_hydra import build_lr_scheduler, build_optimizer

NUM_UPDATES = 60
# As in verl's files, where `_target_` is the class of the config.
OPTIM = {
    "_target_": "verl.workers.config.FSDPOptimizerConfig",
    "optimizer": "AdamW",
    "optimizer_impl": "torch.optim",
    "lr": 0.03,
    "lr_warmup_steps_ratio": 0.1,
    "total_training_steps": -1,
    "weight_decay": 0.01,
    "lr_warmup_steps": -1,
    "betas": [0.9, 0.999],
    "clip_grad": 1.0,
    "min_lr_ratio": 0.0,
    "num_cycles": 0.5,
    "lr_scheduler_type": "cosine",
    "zero_indexed_step": True,
    "warmup_style": None,
    "override_optimizer_config": None,
}


def update(module: nn.Module, config: DictConfig) -> float:
    """Train a module as a worker does; return its last loss."""
    optim = omega_conf_to_dataclass(config)
    optim.total_training_steps = NUM_UPDATES
    optimizer = build_optimizer(module.parameters(), optim)
    scheduler = build_lr_scheduler(optimizer, optim)
    loss = torch.zeros(())
    for _ in range(NUM_UPDATES):
        inputs = torch.randn(64, 8)
        loss = nn.functional.mse_loss(module(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), optim.clip_grad)
        optimizer.step()
        scheduler.step()
    return loss.item()


@optim_hydra.main(config_name="verl_update")
def main(cfg: DictConfig) -> None:
    """Train both modules."""
    torch.manual_seed(0)
    for name, node in (("actor", cfg.actor.optim), ("critic", cfg.critic.optim)):
        module = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
        print(f"{name} loss {update(module, node):.3f}")


TREE = OmegaConf.create({"actor": {"optim": OPTIM}, "critic": {"optim": OPTIM}})
ConfigStore.instance().store("verl_update", TREE)
if __name__ == "__main__":
    main()
