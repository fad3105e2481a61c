"""Save and load an optimizer's state by name, against torch's helpers and its own load.

Time is that of many small tensors; extra memory is measured with larger ones. AdamW has
two groups, with and without decay.

python benchmarks/optimizer_state.py [--quick] [--json PATH]
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from build_groups import MANY, Model
from paired_timing import Pair, run
from peak_memory import PeakPair, Prepared
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from torch.optim import Optimizer

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)

State = dict[str, Any]
CONFIG = {"lr": 1e-3, "weight_decay": 0.1, "no_decay": ["bias", "norm"]}
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)
# torch.distributed.checkpoint.state_dict, and `optimizer.load_state_dict`.
GET, SET, NATIVE = "helper's get", "helper's set", "own load"


def trained(model: nn.Module) -> Optimizer:
    """Return an optimizer with state."""
    optimizer = build_optimizer(model, CONFIG)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def their_state(model: nn.Module, optimizer: Optimizer) -> State:
    """Return the state as torch flattens it."""
    return get_optimizer_state_dict(model, optimizer, options=FLAT)


def load_theirs(model: nn.Module, optimizer: Optimizer, saved: State) -> None:
    """Load what torch flattened."""
    set_optimizer_state_dict(model, optimizer, saved, options=FLAT)


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield the pairs; each model is made when its turn comes."""
    sizes = {20: 2, 100: 2} if is_quick else {100: 51, 1_000: 21, 10_000: 5}
    for size, rounds in sizes.items():
        model = Model(size)
        optimizer = trained(model)
        saved, theirs = optimizer_state_dict(optimizer), their_state(model, optimizer)
        check_same(saved, theirs)
        save = functools.partial(optimizer_state_dict, optimizer)
        load = functools.partial(load_optimizer_state_dict, optimizer, saved)
        get = functools.partial(their_state, model, optimizer)
        put = functools.partial(load_theirs, model, optimizer, theirs)
        wanted = 0.25 if size == max(sizes) else None
        yield Pair(f"state dict, {size:,} tensors", GET, save, get, rounds, 1, wanted)
        yield Pair(f"load, {size:,} tensors", SET, load, put, rounds)
        yield against_native(optimizer, size, rounds)
    if not is_quick:
        yield against_native(trained(Model(30_000)), 30_000, rounds=3)


def against_native(optimizer: Optimizer, size: int, rounds: int) -> Pair:
    """Return the pair of our load and torch's own, which matches by order."""
    saved, native = optimizer_state_dict(optimizer), optimizer.state_dict()
    load = functools.partial(load_optimizer_state_dict, optimizer, saved)
    alone = functools.partial(optimizer.load_state_dict, native)
    wanted = 0.05 if size >= MANY else None
    return Pair(f"load, {size:,} tensors", NATIVE, load, alone, rounds, 1, wanted)


def check_same(ours: State, theirs: State) -> None:
    """Refuse to compare different things; torch's form has the lists of names beside.

    Raises:
        RuntimeError: An entry is missing on one side, or has another value.

    """
    common = ours.keys() & theirs.keys()
    beside = ours.keys() ^ theirs.keys()
    own = ("optim_hydra.", "param_groups.")
    if not all(
        k.startswith(own[0]) or k.endswith(".param_names") for k in beside
    ) or any(
        ours[key] is not theirs[key] and ours[key] != theirs[key] for key in common
    ):
        msg = "the two state dicts are different"
        raise RuntimeError(msg)


def wide(num_tensors: int, state_bytes: int) -> nn.Module:
    """Return weights and biases of one size, so that AdamW keeps that many bytes."""
    size = state_bytes // (2 * 4 * num_tensors)
    return nn.ModuleList(nn.LayerNorm(size) for _ in range(num_tensors // 2))


def size_of(state: State) -> int:
    """Return the bytes of the tensors."""
    tensors = [value for value in state.values() if isinstance(value, Tensor)]
    return sum(tensor.nbytes for tensor in tensors)


def saving(way: str, num_tensors: int, state_bytes: int) -> Prepared:
    """Prepare to ask for the state."""
    model = wide(num_tensors, state_bytes)
    optimizer = trained(model)
    calls: dict[str, Callable[[], State]] = {
        "ours": lambda: optimizer_state_dict(optimizer),
        GET: lambda: their_state(model, optimizer),
    }
    return calls[way], size_of(optimizer_state_dict(optimizer))


def loading(way: str, kind: str, num_tensors: int, state_bytes: int) -> Prepared:
    """Prepare to load into a trained or a fresh optimizer, as if from a file."""
    model = wide(num_tensors, state_bytes)
    optimizer = trained(model)
    saved = {
        "ours": optimizer_state_dict,
        SET: functools.partial(their_state, model),
        NATIVE: Optimizer.state_dict,
    }[way](optimizer)
    num_bytes = size_of(optimizer_state_dict(optimizer))
    saved = copy.deepcopy(saved)  # a file's tensors are not the optimizer's
    if kind == "fresh":
        optimizer = build_optimizer(model, CONFIG)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: load_optimizer_state_dict(optimizer, saved),
        SET: lambda: load_theirs(model, optimizer, saved),
        NATIVE: lambda: optimizer.load_state_dict(saved),
    }
    return calls[way], num_bytes


def make_peaks(is_quick: bool) -> Iterator[PeakPair]:
    """Yield what memory is measured of."""
    state_bytes = 2**24 if is_quick else 2**28
    for number in (20,) if is_quick else (100, 1_000, 10_000):
        size = {"num_tensors": number, "state_bytes": state_bytes}
        ways = [functools.partial(saving, way, **size) for way in ("ours", GET)]
        if not is_quick:
            yield PeakPair(f"state dict, {number:,} tensors", GET, *ways)
        for kind in ("fresh",) if is_quick else ("fresh", "trained"):
            for other in (SET,) if is_quick else (SET, NATIVE):
                ways = [
                    functools.partial(loading, way, kind, **size)
                    for way in ("ours", other)
                ]
                name = f"load into a {kind} optimizer, {number:,} tensors"
                yield PeakPair(name, other, *ways)


if __name__ == "__main__":
    run(__doc__ or "", make_pairs, make_peaks)
