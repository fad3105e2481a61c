"""Clip gradients in the optimizer that they belong to, just before its step."""

from __future__ import annotations

import copyreg
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["clip_before_step", "grad_norm"]

_norms: weakref.WeakKeyDictionary[Optimizer, Tensor] = weakref.WeakKeyDictionary()
_limits: weakref.WeakKeyDictionary[Optimizer, float] = weakref.WeakKeyDictionary()


def clip_before_step(optimizer: Optimizer, max_norm: float) -> None:
    """Clip the total gradient norm of all parameters before each step.

    A closure is followed by the clipping each time the optimizer calls it, since
    the gradients exist only then. Copies of the optimizer clip too.
    """
    optimizer.register_step_pre_hook(_before_step)
    _limits[optimizer] = max_norm
    if type(optimizer).__reduce_ex__ is object.__reduce_ex__:
        # torch leaves hooks out of copies and pickles, and the clipping with them.
        copyreg.pickle(type(optimizer), _reduce)


def grad_norm(optimizer: Optimizer) -> float | None:
    """Return the gradient norm before clipping at the last step, for logging.

    None where the node's `clip_grad` is null or no step was taken yet.

    Example:
        >>> from optim_hydra import build_optimizer
        >>> weight = nn.Parameter(torch.zeros(1))
        >>> optimizer = build_optimizer([weight], {"clip_grad": 1.0})
        >>> weight.grad = torch.tensor([5.0])
        >>> _ = optimizer.step()
        >>> grad_norm(optimizer)
        5.0

    """
    norm = _norms.get(optimizer)
    return None if norm is None else float(norm)


def _before_step(
    optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    # torch counts the optimizer itself as the first of `step`'s arguments.
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        _clip(optimizer)
        return None

    def clipped() -> Any:
        with torch.enable_grad():
            loss = closure()
        _clip(optimizer)
        return loss

    if len(args) > 1:
        return (args[0], clipped, *args[2:]), kwargs
    return args, {**kwargs, "closure": clipped}


def _clip(optimizer: Optimizer) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    # A GradScaler leaves the gradients of fused classes scaled until the step.
    grad_scale = getattr(optimizer, "grad_scale", None)
    scale = 1.0 if grad_scale is None else float(grad_scale)
    norm = nn.utils.clip_grad_norm_(parameters, _limits[optimizer] * scale)
    _norms[optimizer] = norm / scale


def _reduce(optimizer: Optimizer) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    arguments = (type(optimizer), _limits.get(optimizer))
    return _make_empty, arguments, optimizer.__getstate__()


def _make_empty(cls: type[Optimizer], max_norm: float | None) -> Optimizer:
    optimizer = cls.__new__(cls)
    if max_norm is not None:
        # In place of register_step_pre_hook: the state is not there yet.
        optimizer._optimizer_step_pre_hooks = OrderedDict({0: _before_step})
        _limits[optimizer] = max_norm
    return optimizer
