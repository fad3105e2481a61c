"""Clip gradients in the optimizer that they belong to, just before its step."""

from __future__ import annotations

import copyreg
import inspect
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from optim_hydra.errors import ConfigError, Problem
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
    _remember(optimizer, max_norm)


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
    grad_scale = getattr(optimizer, "grad_scale", None)
    scale = 1.0 if grad_scale is None else float(grad_scale)
    try:
        norm = _clip_together(parameters, clipping.max_norm * scale) / scale
    except NotImplementedError as error:
        if not any(p.grad.is_sparse for p in parameters):
            raise
        raise ConfigError([Problem(SPARSE, "clip_grad", ConfigError)]) from error
    # A step that calls its base class's step comes here twice, and the second norm
    # is the clipped one.
    if not clipping.in_step or norm > clipping.max_norm * 1.001:
        clipping.norm = norm
    clipping.in_step = True


def _clip_together(parameters: list[Tensor], max_norm: float) -> Tensor:
    """Clip by one norm over all gradients; return it.

    Sharded gradients (DTensors) are normed mesh by mesh, since torch takes one kind at
    a time, and a norm of norms is the norm of all.
    """
    by_mesh: dict[Any, list[Tensor]] = {}
    for parameter in parameters:
        mesh = getattr(parameter.grad, "device_mesh", None)
        by_mesh.setdefault(mesh, []).append(parameter)
    if len(by_mesh) == 1 and None in by_mesh:
        total: Tensor = nn.utils.clip_grad_norm_(parameters, max_norm)
        return total
    norms: list[Tensor] = []
    for members in by_mesh.values():
        norm: Any = nn.utils.get_total_norm(
            [p.grad for p in members if p.grad is not None]
        )
        norms.append(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
    if not norms:
        return torch.zeros(())
    device = norms[0].device
    total = torch.linalg.vector_norm(torch.stack([norm.to(device) for norm in norms]))
    for members in by_mesh.values():
        nn.utils.clip_grads_with_norm_(members, max_norm, total)
    return total


def _remember(optimizer: Optimizer, max_norm: float) -> None:
    cls = type(optimizer)
    names = list(inspect.signature(cls.step).parameters)
    closure_at = names.index("closure") if "closure" in names else None
    vars(optimizer)[_ATTRIBUTE] = _Clipping(max_norm, closure_at)
    is_plain = cls.__reduce_ex__ is object.__reduce_ex__
    if is_plain and cls.__reduce__ is object.__reduce__:
        # torch leaves hooks out of copies and pickles, and the clipping with them.
        copyreg.pickle(cls, _reduce)


def _reduce(optimizer: Optimizer) -> Any:
    reduced = optimizer.__reduce_ex__(2)
    clipping = _clipping_of(optimizer)
    if clipping is None or isinstance(reduced, str):
        return reduced
    return _make_empty, (type(optimizer), clipping.max_norm), *reduced[2:]


def _make_empty(cls: type[Optimizer], max_norm: float) -> Optimizer:
    optimizer = cls.__new__(cls)
    # In place of the registering calls: the state is not there yet.
    optimizer._optimizer_step_pre_hooks = _hooks(_before_step)
    optimizer._optimizer_step_post_hooks = _hooks(_after_step)
    _remember(optimizer, max_norm)
    return optimizer


def _hooks(function: Callable[..., Any]) -> OrderedDict[int, Callable[..., Any]]:
    hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
    hooks[RemovableHandle(hooks).id] = function
    return hooks
