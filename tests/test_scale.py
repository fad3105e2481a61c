"""Work grows in proportion to the tensors, and what is kept for each of them is small.

Calls are counted, and bytes: neither depends on how busy a machine is.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import AdamW

from optim_hydra import (
    assignment_report,
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)

NO_DECAY = {"no_decay": ["bias", "norm"]}


def model_of(num_tensors: int) -> nn.Module:
    blocks = (
        nn.ModuleDict({"linear": nn.Linear(1, 1)}) for _ in range(num_tensors // 2)
    )
    return nn.ModuleDict({"blocks": nn.ModuleList(blocks)})


def rules_of(number: int) -> dict[str, Any]:
    rules = [
        {"pattern": f"blocks.{i}.*", "lr_mult": 1 / (i + 2)} for i in range(number)
    ]
    return {"param_groups": rules}


def trained(num_tensors: int) -> Any:
    model = model_of(num_tensors)
    optimizer = build_optimizer(model, NO_DECAY)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer


def loading(num_tensors: int) -> Callable[[], object]:
    optimizer = trained(num_tensors)
    saved = optimizer_state_dict(optimizer)
    return lambda: load_optimizer_state_dict(optimizer, saved)


def building(num_tensors: int, config: dict[str, Any]) -> Callable[[], object]:
    model = model_of(num_tensors)
    return lambda: build_optimizer(model, config)


def with_optimizer(call: Callable[[Any], object], number: int) -> Callable[[], object]:
    optimizer = trained(number)
    return lambda: call(optimizer)


WORK: dict[str, Callable[[int], Callable[[], object]]] = {
    "build": lambda number: building(number, NO_DECAY),
    "build with as many rules": lambda number: building(number, rules_of(number // 2)),
    "report": lambda number: with_optimizer(assignment_report, number),
    "state dict": lambda number: with_optimizer(optimizer_state_dict, number),
    "load": loading,
}


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions, those written in C too."""
    work()  # imports and caches
    count = 0

    def on_event(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", WORK)
def test_twice_the_tensors_are_at_most_twice_the_calls(kind: str) -> None:
    small, large = (calls_of(WORK[kind](number)) for number in (400, 800))
    assert large < 2.2 * small


def kept_by(make: Callable[[nn.Module], object], num_tensors: int) -> int:
    model = model_of(num_tensors)
    make(model)  # imports and caches
    gc.collect()
    tracemalloc.start()
    try:
        kept = make(model)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return size


@pytest.mark.parametrize("config", [NO_DECAY, rules_of(100)], ids=["few", "many"])
def test_what_is_kept_beside_the_optimizer_is_under_a_kilobyte_a_tensor(
    config: dict[str, Any],
) -> None:
    ours = kept_by(lambda model: build_optimizer(model, config), 2_000)
    bare = kept_by(lambda model: AdamW(model.parameters()), 2_000)
    assert ours - bare < 1_000 * 2_000
