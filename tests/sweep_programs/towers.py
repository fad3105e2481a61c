"""Train two tiny modules, each with its own optimizer, and log what happens."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

import optim_hydra


@optim_hydra.main(config_path=str(Path(__file__).parent), config_name="towers")
def main(cfg: DictConfig) -> Any:
    """Return the last loss, or what `cfg.also` asks for."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    towers = {name: nn.Linear(2, 1) for name in ("actor", "critic")}
    container = optim_hydra.build_optimizers(towers, cfg)
    loss = torch.zeros(())
    for step in range(4 if "STAY" in os.environ else cfg.num_steps):
        container.zero_grad()
        outputs = [tower(torch.ones(3, 2)) for tower in towers.values()]
        loss = sum(output.square().mean() for output in outputs)
        loss.backward()
        container.step()
        lr = container["actor"].param_groups[0]["lr"]
        optim_hydra.log_metrics(step, {"loss": loss, "lr.actor": lr})
    if cfg.also == "leave" and "STAY" not in os.environ:
        sys.exit(0)
    if cfg.also == "ray":
        import ray  # noqa: PLC0415

        if not ray.is_initialized():
            ray.init()
        assert ray.get(ray.remote(lambda: os.getpid()).remote()) != os.getpid()  # noqa: PLW0108 - Ray takes functions only
    return loss * float("nan") if cfg.also == "diverge" else loss.detach()


if __name__ == "__main__":
    main()
