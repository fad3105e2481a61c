"""Keep the checkpoints of a run in a folder: a killed writer spoils none of them."""

import shutil
from pathlib import Path
from typing import Any

import torch.distributed.checkpoint as dcp
from torch import distributed


def latest(folder: Path) -> Path | None:
    """Return the newest complete checkpoint, None where there is none."""
    complete = [path for path in folder.glob("step_*") if path.suffix != ".partial"]
    return max(complete, key=step_of, default=None)


def step_of(path: Path) -> int:
    """Return the step that a checkpoint was taken at."""
    return int(path.name.removeprefix("step_"))


def save(state: dict[str, Any], folder: Path, step: int) -> None:
    """Write a checkpoint aside, rename it once it is complete, then drop older ones."""
    path = folder / f"step_{step}"
    partial = path.with_suffix(".partial")
    dcp.save(state, checkpoint_id=partial)
    if is_first():
        partial.rename(path)
        for other in folder.glob("step_*"):
            if other != path:
                shutil.rmtree(other)
    if distributed.is_initialized():
        distributed.barrier()


def is_first() -> bool:
    """Whether this is the process that prints and renames."""
    return not distributed.is_initialized() or distributed.get_rank() == 0
