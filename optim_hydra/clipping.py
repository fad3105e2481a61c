"""Clip gradients in the optimizer that they belong to, just before its step."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["clip_before_step", "grad_norm"]

_norms: weakref.WeakKeyDictionary[Optimizer, Tensor] = weakref.WeakKeyDictionary()


def clip_before_step(optimizer: Optimizer, max_norm: float) -> None:
    """Clip the total gradient norm of all parameters before each step.

    A closure is followed by the clipping each time the optimizer calls it, since
    the gradients exist only then.
    """

    def before(
        optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        # torch counts the optimizer itself as the first of `step`'s arguments.
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            _clip(optimizer, max_norm)
            return None

        def clipped() -> Any:
            with torch.enable_grad():
                loss = closure()
            _clip(optimizer, max_norm)
            return loss

        if len(args) > 1:
            return (args[0], clipped, *args[2:]), kwargs
        return args, {**kwargs, "closure": clipped}

    optimizer.register_step_pre_hook(before)


def _clip(optimizer: Optimizer, max_norm: float) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    # A GradScaler leaves the gradients of fused classes scaled until the step.
    scale = getattr(optimizer, "grad_scale", None)
    limit = max_norm if scale is None else max_norm * float(scale)
    norm = nn.utils.clip_grad_norm_(parameters, limit)
    _norms[optimizer] = norm if scale is None else norm / float(scale)


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
