"""Save runs of several kinds and go on with them undisturbed."""

from __future__ import annotations

from typing import Any

from torch.nn.parallel import DistributedDataParallel

from kept_runs import CONFIG, PLAIN, all_of, started
from two_processes import Results, run, sharded, values_of


def saved(name: str, config: dict[str, Any], wrap: Any) -> Results:
    kept = started(config, wrap)
    kept.train(range(3))
    kept.save(name)
    at_saving = all_of(kept)
    kept.train(range(3, 6))
    return {
        "saved": at_saving,
        "went_on": all_of(kept),
        "values": values_of(kept.network),
    }


def grouped() -> Results:
    return saved("grouped", CONFIG, sharded)


def ungrouped() -> Results:
    return saved("ungrouped", PLAIN, sharded)


def replicated() -> Results:
    return saved("replicated", CONFIG, DistributedDataParallel)


run(grouped, ungrouped, replicated)
