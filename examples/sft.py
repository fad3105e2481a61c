"""Train a small language model with the optimizer that `optim` describes.

python examples/sft.py optim=lion optim.lr_scheduler_type=wsd
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

import optim_hydra


@optim_hydra.main(config_path="../conf", config_name="sft")
def main(cfg: DictConfig) -> float:
    """Train, and return the final validation loss, for sweepers to minimise."""
    # Imports torch, which `--cfg job` and `--help` need not wait for.
    from language_model import train  # noqa: PLC0415

    output_dir = Path(HydraConfig.get().runtime.output_dir)
    result = train(cfg, cfg.optim, output_dir)
    print(f"validation loss {result.val_loss:.3f}, curves in {output_dir}")
    return result.val_loss


if __name__ == "__main__":
    main()
