"""Step with `implementation: fastest`, against the fastest of all that a class has.

Which one that is, a few steps of each tell before the two are timed side by side.

python benchmarks/implementations.py [--quick] [--json PATH]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from paired_timing import Pair, run
from torch import nn

from optim_hydra import ConfigError, build_optimizer

CLASSES = ("AdamW", "SGD", "Adagrad", "RMSprop", "NAdam", "Adadelta")
# Tensors, and how many numbers each has.
SHAPES = ((1_000, 64), (300, 4_096), (50, 65_536), (8, 1_048_576))
CHOICES = ("for-loop", "foreach", "fused")


def step_of(
    cls: str, implementation: str, shape: tuple[int, int]
) -> Callable[[], None]:
    """Return a step of an optimizer of its own."""
    number, size = shape
    model = nn.ParameterList(torch.randn(size) for _ in range(number))
    for parameter in model.parameters():
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    config = {"optimizer": cls, "lr": 1e-3, "implementation": implementation}
    if cls == "SGD":
        config["override_optimizer_config"] = {"momentum": 0.9}
    return build_optimizer(model, config).step


def steps_of(cls: str, shape: tuple[int, int]) -> dict[str, Callable[[], None]]:
    """Return a step of each implementation that the class has."""
    steps = {}
    for choice in CHOICES:
        try:
            steps[choice] = step_of(cls, choice, shape)
        except ConfigError:
            continue
    return steps


def best_of(steps: dict[str, Callable[[], None]]) -> str:
    """Return the one whose quickest step of seven is the quickest."""
    spent = dict.fromkeys(steps, float("inf"))
    for _ in range(7):
        for name, step in steps.items():
            start = time.thread_time()
            step()
            spent[name] = min(spent[name], time.thread_time() - start)
    return min(spent, key=lambda name: spent[name])


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield a pair for each class and shape."""
    for cls in CLASSES[:2] if is_quick else CLASSES:
        for shape in SHAPES[:1] if is_quick else SHAPES:
            steps = steps_of(cls, shape)
            best = best_of(steps)
            number, size = shape
            case = f"{cls}, {number:,} tensors of {size:,}"
            ours, wanted = (
                step_of(cls, "fastest", shape),
                1.03 if cls == "AdamW" else None,
            )
            yield Pair(f"fastest {case}", best, ours, steps[best], 21, wanted=wanted)


if __name__ == "__main__":
    run(__doc__ or "", make_pairs)
