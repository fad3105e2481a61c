"""Load on any number of processes what two have saved, and go on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from kept_runs import (
    CONFIG,
    PLAIN,
    Run,
    all_of,
    settings_of,
    started,
    state_of,
)
from optim_hydra import OptimizersContainer
from optim_hydra.saved_state import StateError
from two_processes import Results, groups_of, run, sharded, values_of

OTHER = {**CONFIG, "lr": 2e-2, "weight_decay": 0.2}
REGROUPED = {
    **PLAIN,
    "no_decay": ["bias", "norm", "embedding"],
    "layer_decay": {"factor": 0.5, "layers": []},
}
MUON = {"role": "hidden", "ndim": 2, "optimizer": "Muon", "lr": 0.02}


def loaded(name: str, wrap: Callable[[nn.Module], nn.Module]) -> Results:
    kept = started(CONFIG, wrap, fill=0.5)
    report = kept.load(name)
    at_loading = all_of(kept)
    if name == "grouped" and dist.get_world_size() == 1:
        kept.save("grouped_again")
    kept.train(range(3, 6))
    return {
        "report": str(report),
        "loaded": at_loading,
        "went_on": all_of(kept),
        "values": values_of(kept.network),
    }


def whole(network: nn.Module) -> nn.Module:
    return network


def grouped() -> Results:
    return loaded("grouped", sharded)


def grouped_into_whole() -> Results:
    return loaded("grouped", whole)


def saved_by_two_then_one() -> Results:
    return loaded("grouped_again", sharded)


def replicated() -> Results:
    return loaded("replicated", DistributedDataParallel)


def replicated_into_whole() -> Results:
    return loaded("replicated", whole)


def replicated_into_sharded() -> Results:
    return loaded("replicated", sharded)


def policies() -> Results:
    results: Results = {}
    for policy in ("config", "checkpoint", "strict"):
        kept = started(OTHER, sharded)
        before = settings_of(kept.optimizer)
        try:
            told = str(kept.load("grouped", on_resume=policy))
        except StateError as error:
            told = str(error)
        results[policy] = {
            "told": told,
            "before": before,
            "settings": settings_of(kept.optimizer),
            "state": state_of(kept.optimizer),
        }
    return results


def regrouped() -> Results:
    kept = started(REGROUPED, sharded, fill=0.5)
    report = kept.load("ungrouped")
    results = _kept(kept, str(report))
    kept.train(range(3, 6))
    return {**results, "values": values_of(kept.network)}


def regrouped_with_muon() -> Results:
    config = {**PLAIN, "param_groups": [MUON], "no_decay": ["bias", "norm"]}
    kept = started(config, sharded, fill=0.5)
    assert isinstance(kept.optimizer, OptimizersContainer)
    try:
        kept.load("ungrouped", partial=True)
        refused = None
    except StateError as error:
        refused = str(error)
    untouched = state_of(kept.optimizer) == {}
    report = kept.load("ungrouped", partial=True, missing="fresh")
    results = _kept(kept, str(report))
    kept.train(range(3, 5))
    after = sorted(state_of(kept.optimizer))
    return {**results, "refused": refused, "untouched": untouched, "after": after}


def _kept(kept: Run, report: str) -> dict[str, Any]:
    return {
        "report": report,
        "state": state_of(kept.optimizer),
        "groups": groups_of(kept.optimizer),
    }


SCENARIOS = {
    1: (
        grouped,
        grouped_into_whole,
        replicated_into_whole,
        regrouped,
        regrouped_with_muon,
    ),
    2: (
        grouped,
        saved_by_two_then_one,
        replicated,
        replicated_into_sharded,
        policies,
        regrouped,
        regrouped_with_muon,
    ),
    3: (grouped,),
}
run(*SCENARIOS[int(os.environ["WORLD_SIZE"])])
