"""Trainings that are saved to a file and taken up again, and their bits to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
)
from torch.optim import Optimizer

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.needs import PROTOCOLS
from optim_hydra.saved_state import StateError

FLATTENED = StateDictOptions(flatten_optimizer_state_dict=True)
# Who saved the state: this library, torch, or torch's distributed checkpoint.
FORMS: dict[str, Callable[[nn.Module, Optimizer], dict[str, Any]]] = {
    "ours": lambda _, optimizer: optimizer_state_dict(optimizer),
    "torch": lambda _, optimizer: optimizer.state_dict(),
    "nested": get_optimizer_state_dict,
    "flattened": lambda m, o: get_optimizer_state_dict(m, o, options=FLATTENED),
}
in_each_form = pytest.mark.parametrize("form", list(FORMS))


def bits(value: Any) -> Any:
    """Return what is equal for two values where they are the same to the last bit."""
    if isinstance(value, Tensor) and hasattr(value, "__tensor_flatten__"):
        names, rest = value.__tensor_flatten__()
        return type(value), [bits(getattr(value, name)) for name in names], rest
    if isinstance(value, Tensor):
        raw = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return value.dtype, value.device, tuple(value.shape), bytes(raw.tolist())
    if isinstance(value, Mapping):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [bits(item) for item in value]
    return type(value), value


def assert_same(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    """Compare the bits of two mappings, and name the keys where they differ."""
    keys = [*first, *(key for key in second if key not in first)]
    differing = [key for key in keys if first.get(key) != second.get(key)]
    assert not differing, differing


def optimizers_in(optimizer: Optimizer) -> Iterator[Optimizer]:
    """Yield an optimizer and those that it holds or wraps."""
    yield optimizer
    for value in vars(optimizer).values():
        for inner in value.values() if isinstance(value, dict) else [value]:
            if isinstance(inner, Optimizer):
                yield from optimizers_in(inner)


def bits_of(optimizer: Optimizer) -> list[Any]:
    """Return the bits of all groups and states, by the identity of the parameters."""
    found: list[Any] = []
    for each in optimizers_in(optimizer):
        for group in each.param_groups:
            values = {key: bits(value) for key, value in group.items()}
            found.append((values, [id(parameter) for parameter in group["params"]]))
        found.append({id(p): bits(kept) for p, kept in each.state.items() if kept})
    return found


def kept_for(optimizer: Optimizer) -> dict[str, Any]:
    """Return the bits of what one optimizer keeps for each name."""
    return {
        name: bits(optimizer.state[parameter])
        for group in optimizer.param_groups
        for name, parameter in zip(group["param_names"], group["params"], strict=True)
        if optimizer.state.get(parameter)
    }


def through_file(state: Any, folder: Path) -> Any:
    """Save and load as plain data: no class is called, no memory is shared."""
    torch.save(state, folder / "saved.pt")
    return torch.load(folder / "saved.pt", weights_only=True)


def rows() -> Tensor:
    return torch.randn(8, 4)


def train(
    module: nn.Module,
    optimizer: Optimizer,
    steps: Iterable[int],
    inputs: Callable[[], Tensor] = rows,
) -> None:
    """Take steps with the data that belong to each; every class gets its closure."""
    for step in steps:
        torch.manual_seed(step)
        batch = inputs()

        def closure(batch: Tensor = batch) -> Tensor:
            optimizer.zero_grad()
            loss = module(batch).square().mean()
            loss.backward()
            return loss

        closure()
        optimizer.step(closure)


def assert_resumes(
    make: Callable[[], nn.Module],
    config: Any,
    folder: Path,
    inputs: Callable[[], Tensor] = rows,
) -> Optimizer:
    """Train six steps in one go, and three and three over a file: the same bits."""
    module = make()
    optimizer = build_optimizer(module, config, provides=PROTOCOLS)
    train(module, optimizer, range(3), inputs)
    state = {"model": module.state_dict(), "optim": optimizer_state_dict(optimizer)}
    saved = through_file(state, folder)
    train(module, optimizer, range(3, 6), inputs)

    torch.manual_seed(9)
    twin = make()
    twin.load_state_dict(saved["model"])
    resumed = build_optimizer(twin, config, provides=PROTOCOLS)
    report = load_optimizer_state_dict(resumed, saved["optim"])
    assert report.differences == []
    train(twin, resumed, range(3, 6), inputs)
    ours = bits({**optimizer_state_dict(resumed), **dict(twin.named_parameters())})
    theirs = {**optimizer_state_dict(optimizer), **dict(module.named_parameters())}
    assert_same(ours, bits(theirs))
    return resumed


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def trained(module: nn.Module, config: Any, num_steps: int = 2) -> Optimizer:
    optimizer = build_optimizer(module, config)
    train(module, optimizer, range(num_steps))
    return optimizer


def refused_load(optimizer: Optimizer, saved: Any, **given: Any) -> str:
    """Return the error that a load must end in; it may change nothing."""
    before = bits_of(optimizer)
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(optimizer, saved, **given)
    assert bits_of(optimizer) == before
    return str(caught.value)
