"""Save the stages of a pipeline, each on a process of its own, into one checkpoint."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch import distributed as dist
from torch import nn

from kept_runs import FOLDER
from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import kept_for
from two_processes import Results, run

CONFIG = {"no_decay": ["bias"]}


def stage(number: int) -> nn.Module:
    torch.manual_seed(number)
    return nn.ModuleDict({f"layer{number}": nn.Linear(4, 4)})


def saved_and_loaded() -> Results:
    rank = dist.get_rank()
    module = stage(rank)
    optimizer = build_optimizer(module, CONFIG)
    for _ in range(3 + rank):
        module[f"layer{rank}"](torch.ones(2, 4)).square().sum().backward()
        optimizer.step()
    folder = FOLDER / "pipeline"
    dcp.save({"optimizer": optimizer_state_dict(optimizer)}, checkpoint_id=folder)

    again, same = load(stage(rank), folder)
    whole, _ = load(nn.ModuleDict({**stage(0), **stage(1)}), folder)
    own = kept_for(optimizer)
    every: list[Any] = [None, None]
    dist.all_gather_object(every, own)
    return {
        "stage": kept_for(again) == own,
        "whole": kept_for(whole) == {**every[0], **every[1]},
        "restored": same,
    }


def load(module: nn.Module, folder: Any) -> tuple[Any, int]:
    optimizer = build_optimizer(module, CONFIG)
    state = {"optimizer": optimizer_state_dict(optimizer, templates=True)}
    dcp.load(state, checkpoint_id=folder)
    report = load_optimizer_state_dict(optimizer, state["optimizer"])
    return optimizer, report.num_restored


run(saved_and_loaded)
