"""Train a small language model with AdamW, then with Muon for its hidden matrices.

python examples/muon_transformer.py muon.optim.lr=4e-3

It prints which optimizer has which parameters, and draws the losses beside each other.
Each lr is the best of 1e-3, 2e-3, 3e-3, 4e-3, 6e-3, 8e-3, 1.2e-2 and 1.6e-2, tried with
both under seed 0; all else is as the groups `adamw` and `muon` have it.
"""

import time
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

import optim_hydra


@optim_hydra.main(config_path="../conf", config_name="muon_transformer")
def main(cfg: DictConfig) -> None:
    """Train once with each of the two nodes, from the same seed."""
    # They import torch, which `--cfg job` and `--help` need not wait for.
    import rich  # noqa: PLC0415
    from language_model import train  # noqa: PLC0415
    from plotting import draw_losses  # noqa: PLC0415

    output_dir = Path(HydraConfig.get().runtime.output_dir)
    runs = []
    for node in ("adamw", "muon"):
        folder = output_dir / node
        folder.mkdir(exist_ok=True)
        start = time.perf_counter()
        result = train(cfg, cfg[node].optim, folder)
        seconds = time.perf_counter() - start
        classes = dict.fromkeys(row["class"] for row in result.assignment.rows)
        name = " + ".join(classes)
        rich.print(result.assignment)
        print(f"{name}: validation loss {result.val_loss:.3f} after {seconds:.0f} s")
        runs.append((name, [folder / "metrics.csv"]))
    draw_losses(runs).savefig(output_dir / "losses.png", dpi=150)
    print(f"curves in {output_dir / 'losses.png'}")


if __name__ == "__main__":
    main()
