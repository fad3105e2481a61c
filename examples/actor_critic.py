"""Train PPO with the optimizers that `actor.optim` and `critic.optim` describe.

python examples/actor_critic.py optim@critic.optim=lion actor.optim.lr=3e-4
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

import optim_hydra


@optim_hydra.main(config_path="../conf", config_name="actor_critic")
def main(cfg: DictConfig) -> float:
    """Train, and return the mean greedy return, for sweepers to maximise."""
    # Imports torch, which `--cfg job` and `--help` need not wait for.
    from ppo import train  # noqa: PLC0415

    output_dir = Path(HydraConfig.get().runtime.output_dir)
    result = train(cfg, output_dir)
    print(f"mean return {result:.1f}, curves in {output_dir}")
    return result


if __name__ == "__main__":
    main()
