"""Train on any number of processes, be killed, go on with other settings.

torchrun --nproc-per-node 2 examples/resume.py kill_at=50
python examples/resume.py optim.lr=5e-4 'optim.no_decay=[bias,norm]'

The first command trains on two processes, sharded by FSDP2, and is killed at step 50.
The second goes on from step 40, on one process, with another rate and another grouping:
each parameter gets its own moments back, by its name, and the settings are those of the
second run. What differs is logged.
"""

import math
import os
import signal
from pathlib import Path

from omegaconf import DictConfig

import optim_hydra


@optim_hydra.main(config_path="../conf", config_name="resume")
def main(cfg: DictConfig) -> float:
    """Train from the last checkpoint on, and return the last loss."""
    # They import torch, which `--cfg job` and `--help` need not wait for.
    import torch  # noqa: PLC0415
    from checkpoints import latest, step_of  # noqa: PLC0415
    from torch import distributed  # noqa: PLC0415

    path = latest(Path(cfg.checkpoints))
    if path is not None and step_of(path) >= cfg.num_steps:
        print(f"done before: remove {cfg.checkpoints} to begin anew")
        return math.nan
    torch.set_num_threads(1)
    if "WORLD_SIZE" in os.environ:
        distributed.init_process_group("gloo")
    try:
        return train(cfg)
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def train(cfg: DictConfig) -> float:
    """Do what the module's docstring says."""
    import torch  # noqa: PLC0415
    import torch.distributed.checkpoint as dcp  # noqa: PLC0415
    from checkpoints import is_first, latest, save, step_of  # noqa: PLC0415
    from language_model import LanguageModel, load_text, take_windows  # noqa: PLC0415
    from torch import distributed  # noqa: PLC0415
    from torch.distributed.checkpoint.state_dict import (  # noqa: PLC0415
        get_model_state_dict,
        set_model_state_dict,
    )
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

    length, batch_size = cfg.data.sequence_length, cfg.data.batch_size
    tokens, _ = load_text(cfg.data.num_bytes)
    torch.manual_seed(cfg.seed)
    model = LanguageModel(**cfg.model, sequence_length=length)
    if distributed.is_initialized():
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    optimizer = optim_hydra.build_optimizer(model, cfg.optim)
    scheduler = optim_hydra.build_lr_scheduler(optimizer, cfg.optim, cfg.num_steps)

    folder, step = Path(cfg.checkpoints), 0
    path = latest(folder)
    if path is not None:
        state = {
            "model": get_model_state_dict(model),
            "optimizer": optim_hydra.optimizer_state_dict(optimizer, templates=True),
            "scheduler": scheduler.state_dict(),
        }
        step = step_of(path)
        if is_first():
            print(f"going on from {path}")
        planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
        dcp.load(state, checkpoint_id=path, planner=planner)
        set_model_state_dict(model, state["model"])
        # It logs what it restored, and each setting that differs.
        optim_hydra.load_optimizer_state_dict(optimizer, state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])

    # Seeded by the step, so that a run that goes on sees what the whole run would.
    loss = torch.zeros(())
    while step < cfg.num_steps:
        rng = torch.Generator().manual_seed(cfg.seed + step)
        starts = torch.randint(len(tokens) - length, (batch_size,), generator=rng)
        optimizer.zero_grad()
        loss = model.loss(take_windows(tokens, starts, length))
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step == cfg.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if step % cfg.save_interval == 0:
            state = {
                "model": get_model_state_dict(model),
                "optimizer": optim_hydra.optimizer_state_dict(optimizer),
                "scheduler": scheduler.state_dict(),
            }
            save(state, folder, step)
    if is_first():
        print(f"loss {loss.item():.3f} at step {step}")
    return loss.item()


if __name__ == "__main__":
    main()
