"""Compile the step of an optimizer that was built, with rates that are tensors.

The optimizer stays what it is: an object of the class, whose hooks run around the
compiled update. A number would be compiled in, and each rate of a schedule compiled
anew; a tensor is an input.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.kept_on_copies import keep_on_copies

__all__ = ["compile_step", "compiled_update", "update_of", "with_tensor_rates"]

_RATES = ("lr", "initial_lr")


def compile_step(optimizer: Optimizer) -> None:
    """Let `optimizer.step` run compiled from now on, and on copies too.

    torch compiles at the first step. A closure is called before, uncompiled. What
    `optimizer.state_dict()` returns has plain rates, as that of any optimizer; rates
    that are loaded become tensors again.
    """
    with_tensor_rates(optimizer.param_groups)
    _bind(optimizer)


def with_tensor_rates(groups: Iterable[dict[str, Any]]) -> None:
    """Turn rates that are numbers into tensors, as exact as they are.

    On the CPU, whatever the device of the parameters: every implementation takes them
    from there, and writing them waits for no device.
    """
    for group in groups:
        for key in _RATES:
            if key in group and not isinstance(group[key], Tensor):
                group[key] = torch.tensor(float(group[key]), dtype=torch.float64)


def update_of(cls: type[Optimizer]) -> Callable[..., Any]:
    """Return the step of a class without the hooks that torch puts around it."""
    step: Callable[..., Any] = cls.step
    is_hooked = getattr(step, "hooked", False)
    return getattr(step, "__wrapped__", step) if is_hooked else step


def compiled_update(cls: type[Optimizer], **options: Any) -> Callable[..., Any]:
    """Return the step of a class, compiled and without hooks.

    torch compiles a piece of code for eight callers and then stops, and all optimizers
    of a class share their code. Where torch can, each is counted by itself.
    """
    if "isolate_recompiles" in inspect.signature(torch.compile).parameters:
        options["isolate_recompiles"] = True
    compiled: Callable[..., Any] = torch.compile(update_of(cls), **options)
    return compiled


def _bind(optimizer: Optimizer) -> None:
    update = update_of(type(optimizer))
    compiled = compiled_update(type(optimizer))

    @functools.wraps(update)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            return compiled(self)
        given = inspect.signature(update).bind(self, *args, **kwargs)
        closure = given.arguments.pop("closure", None)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        result = compiled(*given.args, **given.kwargs)
        return result if closure is None else loss

    # A method, as LRScheduler wants it, and hooked as that of the class.
    hooked = Optimizer.profile_hook_step(step)
    vars(optimizer)["step"] = MethodType(hooked, optimizer)
    optimizer.register_state_dict_post_hook(_with_numbers)
    optimizer.register_load_state_dict_post_hook(_with_tensors)
    keep_on_copies(optimizer, _bind)


def _with_numbers(optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    del optimizer
    groups = [
        {k: float(v) if k in _RATES else v for k, v in group.items()}
        for group in state["param_groups"]
    ]
    return {**state, "param_groups": groups}


def _with_tensors(optimizer: Optimizer) -> None:
    with_tensor_rates(optimizer.param_groups)
