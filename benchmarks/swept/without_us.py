"""The same training with Hydra, torch and the csv module alone."""

import csv
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from training import train


@hydra.main(version_base=None, config_path=".", config_name="without_us")
def main(cfg: DictConfig) -> float:
    """Train once."""
    path = Path(HydraConfig.get().runtime.output_dir) / "metrics.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", "loss", "lr.model"])

        def log(step: int, values: dict[str, Any]) -> None:
            writer.writerow([step, *values.values()])
            file.flush()

        return train(
            cfg,
            lambda model: hydra.utils.instantiate(cfg.optim, model.parameters()),
            log,
        )


if __name__ == "__main__":
    main()
