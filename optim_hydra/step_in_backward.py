"""Update each parameter as soon as its gradient is there, and free the gradient.

There is one optimizer, with its groups, state and checkpoints. An update is the step of
its class on a view of it: the same state, and one group with one parameter. So in
backward no more than one gradient is kept at a time, and `optimizer.step()` finds none.
"""

from __future__ import annotations

import warnings
import weakref
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.compiled_step import update_of
from optim_hydra.errors import OptimHydraError, OptimHydraWarning, join_key
from optim_hydra.kept_on_copies import keep_on_copies
from optim_hydra.replicas import check_no_replicas

__all__ = ["StepInBackwardError", "refuse_scaled_gradients", "step_in_backward", "view"]

_ATTRIBUTE = "_optim_hydra_in_backward"
_FIELD = "step_in_backward"


class StepInBackwardError(OptimHydraError, RuntimeError):
    """The training loop does what can't be done where backward makes the updates."""


@dataclass
class _Record:
    """What an optimizer that steps in backward keeps beside its state."""

    at: str
    """Where its node stands."""
    updated: set[int] = field(default_factory=set)
    """`id`s of the parameters that were updated since the last step."""
    num_hooked: int = 0
    has_begun: bool = False
    """Whether backward has updated a parameter, or it was told that it has not."""
    is_replaced: bool = False
    """Whether another optimizer was built for some of its parameters."""


class _Hook:
    """What torch calls with a parameter whose gradient is complete."""

    def __init__(self, optimizer: Optimizer, group: int, name: str) -> None:
        # Weak: parameters that outlive the optimizer are no longer its.
        self.optimizer = weakref.ref(optimizer)
        self.group = group
        self.name = name

    def __call__(self, parameter: Tensor) -> None:
        optimizer = self.optimizer()
        if optimizer is not None and parameter.grad is not None:
            _update(optimizer, self, parameter)


def step_in_backward(optimizer: Optimizer, at: str) -> None:
    """Let backward update the parameters from now on.

    `optimizer.step()` then belongs after each backward as ever: it lets the next one
    begin, runs hooks, counts what a class counts in its groups, and updates what has a
    gradient still (parameters of a group that was added since, or set by hand).

    Args:
        optimizer: Of one class.
        at: Where its node stands, for errors.

    """
    _prepare(optimizer, at)
    _hook(optimizer, takes_over=True)
    keep_on_copies(optimizer, _prepare, at)
    keep_on_copies(optimizer, _hook, with_state=True)


def view(optimizer: Optimizer, group: dict[str, Any], parameter: Tensor) -> Any:
    """Return an optimizer with the same state, one parameter, and no hooks."""
    made: Any = object.__new__(type(optimizer))
    vars(made).update(vars(optimizer), param_groups=[{**group, "params": [parameter]}])
    # A class whose step calls that of its base class would run them.
    vars(made).update(_optimizer_step_pre_hooks={}, _optimizer_step_post_hooks={})
    return made


def refuse_scaled_gradients(optimizer: Optimizer, at: str) -> None:
    """Say so where a `GradScaler` steps an optimizer whose updates were made."""

    def before_step(this: Optimizer, args: Any, kwargs: Any) -> None:
        del args, kwargs
        vars(this).pop("grad_scale", None)
        if vars(this).pop("found_inf", None) is not None:
            msg = (
                "backward has used gradients up that a GradScaler had scaled: train"
                " without one (bfloat16 needs none), and from the start, or set"
                f" {_FIELD}=false @ {join_key(at, _FIELD)}"
            )
            raise StepInBackwardError(msg)

    # The scaler would find no gradients and end in an assertion; so it asks for none.
    vars(optimizer)["_step_supports_amp_scaling"] = True
    optimizer.register_step_pre_hook(before_step)


def _prepare(optimizer: Optimizer, at: str) -> None:
    vars(optimizer)[_ATTRIBUTE] = _Record(at)
    refuse_scaled_gradients(optimizer, at)
    optimizer.register_step_pre_hook(_before_step)
    optimizer.register_step_post_hook(_after_step)


def _hook(optimizer: Optimizer, *, takes_over: bool = False) -> None:
    """Register a hook with each parameter that has none."""
    record: _Record = vars(optimizer)[_ATTRIBUTE]
    record.num_hooked = 0
    for index, group in enumerate(optimizer.param_groups):
        names = group.get("param_names") or [""] * len(group["params"])
        for name, parameter in zip(names, group["params"], strict=True):
            record.num_hooked += 1
            hooks = getattr(parameter, "_post_accumulate_grad_hooks", None) or {}
            others = {k: each for k, each in hooks.items() if isinstance(each, _Hook)}
            if takes_over:
                for key, other in others.items():
                    del hooks[key]
                    _replace(other.optimizer())
                others = {}
            if not others and parameter.requires_grad:
                hook = _Hook(optimizer, index, name or f"parameter {len(names)}")
                parameter.register_post_accumulate_grad_hook(hook)


def _replace(optimizer: Optimizer | None) -> None:
    if optimizer is not None:
        vars(optimizer)[_ATTRIBUTE].is_replaced = True


def _update(optimizer: Optimizer, hook: _Hook, parameter: Tensor) -> None:
    record: _Record = vars(optimizer)[_ATTRIBUTE]
    if not record.has_begun:
        check_no_replicas(parameter, join_key(record.at, _FIELD))
        record.has_begun = True
    if id(parameter) in record.updated:
        parameter.grad = None
        msg = (
            f"{hook.name} gets a second gradient before optimizer.step(), and was"
            " updated with the first: call it after each backward(), and to accumulate"
            f" gradients set {_FIELD}=false @ {join_key(record.at, _FIELD)}"
        )
        raise StepInBackwardError(msg)
    group = optimizer.param_groups[hook.group]
    update_of(type(optimizer))(view(optimizer, group, parameter))
    record.updated.add(id(parameter))
    parameter.grad = None


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    del args, kwargs
    record: _Record = vars(optimizer)[_ATTRIBUTE]
    if record.is_replaced:
        msg = (
            "another optimizer was built for these parameters and updates them in"
            f" backward: this one no longer does @ {join_key(record.at, _FIELD)}"
        )
        raise StepInBackwardError(msg)
    parameters = (p for group in optimizer.param_groups for p in group["params"])
    if not record.has_begun and any(p.grad is not None for p in parameters):
        record.has_begun = True
        text = (
            "backward has updated no parameter, and gradients are left to the step: set"
            f" {_FIELD}=false where they come another way @"
            f" {join_key(record.at, _FIELD)}"
        )
        warnings.warn(text, OptimHydraWarning, stacklevel=3)


def _after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    del args, kwargs
    record: _Record = vars(optimizer)[_ATTRIBUTE]
    record.updated.clear()
    if record.num_hooked != sum(len(g["params"]) for g in optimizer.param_groups):
        _hook(optimizer)
