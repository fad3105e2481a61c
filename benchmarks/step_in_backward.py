"""Train with updates in backward, against updates after it: time and memory.

An iteration is forward, backward and step of a stack of layers, with the state of the
optimizer made before. Memory is what an iteration needs at its peak beyond that, in
shares of the gradients of all parameters.

python benchmarks/step_in_backward.py [--quick] [--json PATH]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from paired_timing import Pair, run
from peak_memory import PeakPair, Prepared
from torch import nn

from optim_hydra import build_optimizer

Iteration = Callable[[], Any]


def iteration(
    num_layers: int, width: int, *, is_in_backward: bool, implementation: str | None
) -> Iteration:
    """Return a call that trains a stack of layers once, on one row."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(num_layers)))
    node = {"implementation": implementation, "step_in_backward": is_in_backward}
    optimizer = build_optimizer(model, node)
    inputs = torch.randn(1, width)

    def train() -> None:
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    train()
    return train


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield the pairs; each model is made when its turn comes."""
    sizes = ((4, 16), (8, 16)) if is_quick else ((100, 64), (500, 16), (24, 1_024))
    for num_layers, width in sizes:
        for implementation in ("for-loop", "fused"):
            make = functools.partial(
                iteration, num_layers, width, implementation=implementation
            )
            name = f"{num_layers} layers of {width} x {width}, {implementation}"
            ours, other = make(is_in_backward=True), make(is_in_backward=False)
            yield Pair(name, "step after backward", ours, other, rounds=31, calls=3)


def prepare(num_layers: int, width: int, *, is_in_backward: bool) -> Prepared:
    """Return an iteration, and the bytes of all gradients."""
    train = iteration(
        num_layers, width, is_in_backward=is_in_backward, implementation="fused"
    )
    return train, num_layers * (width * width + width) * 4


def make_peaks(is_quick: bool) -> Iterator[PeakPair]:
    """Yield what is compared by the memory that it needs beside the state."""
    num_layers, width = (8, 512) if is_quick else (24, 1_024)
    make = functools.partial(prepare, num_layers, width)
    yield PeakPair(
        f"an iteration of {num_layers} layers",
        "step after backward",
        functools.partial(make, is_in_backward=True),
        functools.partial(make, is_in_backward=False),
    )


if __name__ == "__main__":
    run(__doc__ or "", make_pairs, make_peaks)
