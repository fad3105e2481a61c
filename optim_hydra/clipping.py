"""Clip gradients in the optimizer that they belong to, just before its step."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.errors import ConfigError, Problem
from optim_hydra.kept_on_copies import keep_on_copies
from optim_hydra.unwrapping import unwrapped

__all__ = ["clip_before_step", "grad_norm"]

_ATTRIBUTE = "_optim_hydra_clipping"
SPARSE = "sparse gradients can't be clipped: set clip_grad=null"


@dataclass
class _Clipping:
    """The limit of one optimizer, and the last norm before clipping."""

    max_norm: float
    closure_at: int | None
    """Where `step` takes a closure, the optimizer itself counted."""
    norm: Tensor | None = None
    in_step: bool = False


def clip_before_step(optimizer: Optimizer, max_norm: float) -> None:
    """Clip the total gradient norm of all parameters before each step.

    A closure is followed by the clipping each time the optimizer calls it, since
    the gradients exist only then. Copies of the optimizer clip too.
    """
    optimizer.register_step_pre_hook(_before_step)
    optimizer.register_step_post_hook(_after_step)
    names = list(inspect.signature(type(optimizer).step).parameters)
    closure_at = names.index("closure") if "closure" in names else None
    vars(optimizer)[_ATTRIBUTE] = _Clipping(max_norm, closure_at)
    keep_on_copies(optimizer, clip_before_step, max_norm)


def grad_norm(optimizer: Optimizer) -> float | None:
    """Return the gradient norm before clipping at the last step, for logging.

    None where the node's `clip_grad` is null or no step was taken yet. It is kept by
    what the node built: one norm for a node with several classes, and
    `grad_norm(container["critic"])` for one of several modules.

    Example:
        >>> from optim_hydra import build_optimizer
        >>> weight = nn.Parameter(torch.zeros(1))
        >>> optimizer = build_optimizer([weight], {"clip_grad": 1.0})
        >>> weight.grad = torch.tensor([5.0])
        >>> _ = optimizer.step()
        >>> grad_norm(optimizer)
        5.0

    """
    clipping = _clipping_of(unwrapped(optimizer))
    return None if clipping is None or clipping.norm is None else float(clipping.norm)


def _clipping_of(optimizer: Optimizer) -> _Clipping | None:
    found: _Clipping | None = vars(optimizer).get(_ATTRIBUTE)
    return found


def _before_step(
    optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    clipping = _clipping_of(optimizer)
    if clipping is None:
        return None
    at = clipping.closure_at
    is_placed = at is not None and len(args) > at
    closure = args[at] if is_placed else kwargs.get("closure")  # type: ignore[index]
    if not callable(closure):
        _clip(optimizer, clipping)
        return None

    def clipped(*closure_args: Any, **closure_kwargs: Any) -> Any:
        with torch.enable_grad():
            loss = closure(*closure_args, **closure_kwargs)
        clipping.in_step = False
        _clip(optimizer, clipping)
        return loss

    if is_placed:
        return (*args[:at], clipped, *args[at + 1 :]), kwargs  # type: ignore[operator]
    return args, {**kwargs, "closure": clipped}


def _after_step(
    optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    del args, kwargs
    clipping = _clipping_of(optimizer)
    if clipping is not None:
        clipping.in_step = False


def _clip(optimizer: Optimizer, clipping: _Clipping) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    parameters = [p for p in parameters if p.grad is not None]
    # A GradScaler leaves the gradients of fused classes scaled until the step.
    scale = getattr(optimizer, "grad_scale", None)
    try:
        norm = _clip_together(parameters, clipping.max_norm, scale)
    except NotImplementedError as error:
        if not any(p.grad.is_sparse for p in parameters):
            raise
        raise ConfigError([Problem(SPARSE, "clip_grad", ConfigError)]) from error
    # A step that calls its base class's step comes here twice, and the second norm
    # is the clipped one. Which it is stays on the device: nobody waits for it.
    if clipping.in_step and clipping.norm is not None:
        is_larger = norm > clipping.max_norm * 1.001
        norm = torch.where(is_larger, norm, clipping.norm.to(norm.device))
    clipping.norm = norm
    clipping.in_step = True


def _clip_together(
    parameters: list[Tensor], max_norm: float, scale: Tensor | None
) -> Tensor:
    """Clip by one norm over all gradients, less their scale; return it.

    Sharded gradients (DTensors) are normed mesh by mesh, since torch takes one kind at
    a time, and a norm of norms is the norm of all.
    """
    by_mesh: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        mesh = getattr(parameter.grad, "device_mesh", None)
        by_mesh.setdefault(mesh, []).append(parameter)
    norms: list[Tensor] = []
    for members in by_mesh.values():
        norm: Any = nn.utils.get_total_norm(
            [p.grad for p in members if p.grad is not None]
        )
        norms.append(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
    if not norms:
        return torch.zeros(())
    total = norms[0]
    if len(norms) > 1:
        together = torch.stack([norm.to(total.device) for norm in norms])
        total = torch.linalg.vector_norm(together)
    if scale is not None:
        total = total / scale.to(total.device)
    for members in by_mesh.values():
        nn.utils.clip_grads_with_norm_(members, max_norm, total)
    return total
