"""Learn what a class of torch or torchao keeps from a step of a very small optimizer.

These classes need nothing but parameters and settings, and keep the same keys for a
parameter of any size, so that this costs neither memory nor time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from optim_hydra.needs import need_of

__all__ = ["has_miniature", "kept_in_miniature", "made_up_gradient", "small_shape"]

_PACKAGES = ("torch.optim.", "torchao.")
# How a step is computed: not what it keeps, and not on every device.
_HOW = ("fused", "foreach", "capturable", "differentiable")


@functools.cache
def has_miniature(cls: Any) -> bool:
    """Whether a class is one that `kept_in_miniature` can say something of."""
    grows = need_of(cls).protocol == "closure"  # LBFGS keeps one more with each loss
    return f"{cls.__module__}.".startswith(_PACKAGES) and not grows


def small_shape(num_dimensions: int) -> list[int]:
    """Return a shape whose lengths differ, so that they tell which is which."""
    return list(range(2, 2 + num_dimensions))


def kept_in_miniature(
    cls: Any, num_dimensions: int, dtype: torch.dtype, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what a class keeps for a parameter of `small_shape` after one step.

    None where its step fails.

    Args:
        cls: A class of which `has_miniature` is true.
        num_dimensions: How many the parameter has.
        dtype: Of the parameter.
        settings: What it is constructed with.

    """
    given = {k: _number(v) for k, v in settings.items() if k not in _HOW}
    with contextlib.suppress(Exception), _as_written(cls):
        shape = small_shape(num_dimensions)
        parameter = nn.Parameter(torch.ones(shape, dtype=dtype, device="cpu"))
        parameter.grad = made_up_gradient(cls, parameter)
        optimizer = cls([parameter], **given)
        optimizer.step()
        return dict(optimizer.state[parameter])
    return None


def made_up_gradient(cls: type, parameter: Tensor) -> Tensor:
    """Return ones, in the layout that a class takes."""
    ones = torch.ones_like(parameter, requires_grad=False)
    if need_of(cls).protocol == "sparse_gradients" and ones.ndim:
        return ones.to_sparse(1)
    return ones


@contextlib.contextmanager
def _as_written(cls: type) -> Iterator[None]:
    """Let torchao's steps run uncompiled: compiling takes half a minute."""
    if cls.__module__.startswith("torchao."):
        with torch.compiler.set_stance("force_eager"):
            yield
    else:
        yield


def _number(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_number, value))
    is_number = isinstance(value, Tensor) and value.numel() == 1
    return value.item() if is_number else value
