"""Write the rates of a schedule into groups, those that are tensors once for each.

A tensor lr stays the tensor that it is, since a compiled step or a captured graph reads
it. Groups that a schedule gives one rate at every step share one tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

__all__ = ["products", "share_rates", "shared", "write_rates"]

_Groups = Sequence[dict[str, Any]]
_Rate = float | Tensor


def shared(rates: Sequence[_Rate]) -> list[_Rate]:
    """Return one tensor for all that are equal."""
    first: dict[tuple[Any, ...], Tensor] = {}
    return [
        first.setdefault((float(rate), rate.dtype, rate.device), rate)
        if isinstance(rate, Tensor)
        else rate
        for rate in rates
    ]


def products(rates: Sequence[_Rate], factors: Iterable[float]) -> list[_Rate]:
    """Multiply each rate by its factor, a tensor once for each factor."""
    made: dict[tuple[int, float], Tensor] = {}

    def product(rate: _Rate, factor: float) -> _Rate:
        if not isinstance(rate, Tensor):
            return rate * factor  # a whole number
        key = id(rate), factor
        if key not in made:
            made[key] = rate * factor
        return made[key]

    return [
        product(rate, factor) if type(rate) is not float else rate * factor
        for rate, factor in zip(rates, factors, strict=False)
    ]


def share_rates(groups: _Groups, alike: Iterable[tuple[Any, ...]]) -> None:
    """Give groups the tensor of the first one that is like them.

    Args:
        groups: Whose lr are tensors, or numbers, which are left alone.
        alike: Of each group what its rate depends on.

    """
    first: dict[tuple[Any, ...], Tensor] = {}
    for group, key in zip(groups, alike, strict=True):
        rate = group["lr"]
        if isinstance(rate, Tensor):
            kind = rate.shape, rate.dtype, rate.device
            group["lr"] = first.setdefault((*key, *kind), rate)


def write_rates(groups: _Groups, rates: Sequence[_Rate]) -> list[_Rate]:
    """Set the rate of each group; return copies, as torch does.

    Groups that have one tensor and now get several rates each get their own.
    """
    written: dict[int, tuple[_Rate, Tensor]] = {}
    copies = list(rates)
    for index, (group, rate) in enumerate(zip(groups, rates, strict=False)):
        tensor = group["lr"]
        if type(tensor) is float and type(rate) is float:  # as it mostly is
            group["lr"] = rate
            continue
        if not isinstance(tensor, Tensor):
            group["lr"] = rate.clone() if isinstance(rate, Tensor) else rate
            continue
        known = written.get(id(tensor))
        if known is None or not _is_same(known[0], rate):
            if known is not None:
                tensor = group["lr"] = tensor.clone()
            _fill(tensor, rate)
            known = written[id(tensor)] = rate, tensor.clone()
        copies[index] = known[1]
    return copies


def _fill(tensor: Tensor, rate: _Rate) -> None:
    if isinstance(rate, Tensor):
        tensor.copy_(rate)
    else:
        tensor.fill_(rate)


def _is_same(first: _Rate, second: _Rate) -> bool:
    """Whether two rates are one; tensors are not compared, which waits for them."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return first is second
    return first == second
