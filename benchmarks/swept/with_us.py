"""The training with `optim_hydra.main`, its optimizer and its log."""

from omegaconf import DictConfig
from training import train

import optim_hydra


@optim_hydra.main(config_path=".", config_name="with_us")
def main(cfg: DictConfig) -> float:
    """Train once."""
    return train(
        cfg,
        lambda model: optim_hydra.build_optimizer(model, cfg.optim),
        optim_hydra.log_metrics,
    )


if __name__ == "__main__":
    main()
