"""Make plain numbers of what a job returns or logs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optim_hydra.errors import OptimHydraError

__all__ = ["ResultError", "is_finite", "plain_number", "plain_result"]

Result = float | dict[str, float] | None


class ResultError(OptimHydraError, ValueError):
    """A result is no number, or not a finite one."""


def plain_result(value: Any, name: str = "result") -> Result:
    """Return what a job returned as a float, or as name -> float.

    A sweep sends results from process to process and ranks them: a tensor or an array
    of one element becomes a float, and None stays None.

    Args:
        value: A number, a tensor or array of one element, a mapping of those, None.
        name: What to call it in an error.

    Raises:
        ResultError: It is none of these.

    Example:
        >>> import torch
        >>> plain_result(torch.tensor(0.25)), plain_result({"loss": torch.ones(1)})
        (0.25, {'loss': 1.0})

    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {str(key): plain_number(item, str(key)) for key, item in value.items()}
    return plain_number(value, name)


def plain_number(value: Any, name: str) -> float:
    """Return a number, or the one element of a tensor or array, as a float.

    Raises:
        ResultError: It is neither.

    """
    count = _count(value)
    if count > 1:
        what = f"{name} has {count} elements: log or return one number, such as a mean"
        raise ResultError(what)
    is_number = isinstance(value, (int, float)) or hasattr(value, "item")
    if not is_number or count == 0:
        what = f"{name} is of type {type(value).__name__}, where a number is due"
        raise ResultError(what)
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        what = f"{name} of type {type(value).__name__} is no float: {error}"
        raise ResultError(what) from error


def _count(value: Any) -> int:
    number = getattr(value, "numel", None)
    count = number() if callable(number) else getattr(value, "size", 1)
    return count if isinstance(count, int) else 1


def is_finite(result: Result) -> bool:
    """Whether there is no NaN or infinity in a result."""
    numbers = result.values() if isinstance(result, dict) else [result]
    return all(number is None or math.isfinite(number) for number in numbers)
