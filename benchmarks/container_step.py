"""Step through what the library builds, against the bare steps of torch's optimizers.

Schedules are stepped beside LambdaLR with the same factors.

Both sides of a pair update the same parameters with the same state tensors, since
where these lie in memory makes more difference than what is measured.

python benchmarks/container_step.py [--quick] [--json PATH]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from paired_timing import Pair, run
from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from optim_hydra import build_lr_scheduler, build_optimizer, build_optimizers

Steps = tuple[Callable[[], Any], Callable[[], Any]]
LR = 1e-3
SIZE = 16
FUSED = {"lr": LR, "implementation": "fused"}
SCHEDULED = {**FUSED, "lr_scheduler_type": "cosine", "lr_warmup_steps_ratio": 0.1}
SHARES = (0.5, 0.25, 0.125, 0.0625)


def layers(number: int, size: int = SIZE) -> nn.ModuleList:
    """Return as many matrices, each with a gradient."""
    model = nn.ModuleList(nn.Linear(size, size, bias=False) for _ in range(number))
    for parameter in model.parameters():
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    return model


def through_container(num_tensors: int, size: int = SIZE) -> Steps:
    """Return a step of an actor and a critic with schedules, and the bare steps."""
    modules = {name: layers(num_tensors // 2, size) for name in ("actor", "critic")}
    config = {name: {"optim": SCHEDULED} for name in modules}
    container = build_optimizers(modules, config, total_training_steps=1_000_000)
    bare = [AdamW(m.parameters(), lr=LR, fused=True) for m in modules.values()]
    for ours, theirs in zip(container.optimizers, bare, strict=True):
        share_state(ours, theirs)

    def step_each() -> None:
        for optimizer in bare:
            optimizer.step()

    return container.step, step_each


def by_many_rules(num_tensors: int) -> Steps:
    """Return a step of rules with few different values, and one of as many groups."""
    model = layers(num_tensors)
    named = list(model.named_parameters())
    rules = [
        {"pattern": name, "lr_mult": SHARES[index % len(SHARES)]}
        for index, (name, _) in enumerate(named)
    ]
    ours = build_optimizer(model, {**FUSED, "param_groups": rules})
    groups = [
        {"params": [p for _, p in named[index :: len(SHARES)]], "lr": share * LR}
        for index, share in enumerate(SHARES)
    ]
    theirs = AdamW(groups, lr=LR, fused=True)
    if values_of(ours) != values_of(theirs):
        msg = "the rules make other groups than those made by hand"
        raise RuntimeError(msg)
    share_state(ours, theirs)
    return ours.step, theirs.step


def values_of(optimizer: Optimizer) -> list[tuple[float, list[int]]]:
    """Return the rate and the parameters of each group."""
    return [
        (group["lr"], list(map(id, group["params"])))
        for group in optimizer.param_groups
    ]


def plain(num_tensors: int) -> Steps:
    """Return a step of a built optimizer, and one of the same class."""
    model = layers(num_tensors)
    ours = build_optimizer(model, FUSED)
    theirs = AdamW(model.parameters(), lr=LR, fused=True)
    share_state(ours, theirs)
    return ours.step, theirs.step


def schedule(num_groups: int, *, is_tensor: bool) -> Steps:
    """Return a step of a schedule and one of LambdaLR, for groups of one tensor."""
    schedulers: list[Any] = []
    for _ in range(2):
        groups: list[Any] = [
            {"params": [nn.Parameter(torch.ones(1))], "lr": torch.tensor(LR)}
            for _ in range(num_groups)
        ]
        optimizer = build_optimizer(groups, {"optimizer": "SGD"})
        for group in () if is_tensor else optimizer.param_groups:
            group["lr"] = LR
        schedulers.append(
            LambdaLR(optimizer, schedulers[0].schedule.factor)
            if schedulers
            else build_lr_scheduler(optimizer, SCHEDULED, 1_000_000)
        )
        optimizer.step()
    return schedulers[0].step, schedulers[1].step


def share_state(first: Optimizer, second: Optimizer) -> None:
    """Let two optimizers of the same parameters have one state."""
    first.step()
    second.state = first.state


def make_pairs(is_quick: bool) -> Iterator[Pair]:
    """Yield the pairs; each model is made when its turn comes."""
    for size in (20, 40) if is_quick else (100, 1_000):
        calls, rounds = max(2, 1_000 // size), 101
        for name, against, (ours, other) in (
            ("container with schedules", "steps of the two", through_container(size)),
            ("build_optimizer", "the class by hand", plain(size)),
        ):
            case = f"{name}, {size:,} tensors"
            yield Pair(case, against, ours, other, rounds, calls, wanted=1.02)
    if not is_quick:
        ours, other = through_container(100, 256)
        case = "container with schedules, 100 tensors of 256 x 256"
        yield Pair(case, "steps of the two", ours, other, 51, 4, wanted=1.02)
    for size in (1, 10) if is_quick else (1, 100, 1_000):
        for is_tensor in (False, True):
            ours, other = schedule(size, is_tensor=is_tensor)
            kind = "a tensor" if is_tensor else "a number"
            name = f"schedule, {size:,} groups, lr {kind}"
            calls = max(2, 1_000 // size)
            yield Pair(name, "LambdaLR", ours, other, 31, calls, wanted=0.2)
    number = 40 if is_quick else 1_000
    ours, other = by_many_rules(number)
    case = f"{number:,} rules, {len(SHARES)} settings"
    yield Pair(case, "groups by hand", ours, other, 51, 2, wanted=1.03)


if __name__ == "__main__":
    run(__doc__ or "", make_pairs)
