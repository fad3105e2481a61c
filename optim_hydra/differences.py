"""Compare settings that were saved with those of this run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optim_hydra.state_slots import Slot

__all__ = ["SHOWN", "Difference", "Rows", "compare", "equal", "plain"]

SHOWN = 3
Rows = list[tuple[Slot, dict[str, Any]]]
"""The parameters of a group, each with its saved settings."""


@dataclass(frozen=True)
class Difference:
    """A setting that was saved with another value than this run has."""

    key: str
    saved: Any
    current: Any
    names: list[str]
    """Parameters that it holds for."""
    is_taken: bool = False
    """Whether the saved value is used."""

    def __str__(self) -> str:
        """Show key, saved and current value, and the first few names."""
        more = len(self.names) - SHOWN
        names = ", ".join(self.names[:SHOWN]) + (f" and {more} more" * (more > 0))
        if self.is_taken:
            return f"{self.key}: {self.saved} as saved, not {self.current} ({names})"
        return f"{self.key}: saved {self.saved}, now {self.current} ({names})"


def compare(
    key: str,
    rows: Rows,
    differences: dict[tuple[str, str, str], Difference],
    *,
    is_taken: bool,
) -> None:
    """Note with which other values a setting of a group was saved.

    Args:
        key: The setting.
        rows: The parameters of the group.
        differences: Where to note them, by key and values.
        is_taken: Whether the saved value is used.

    """
    group = rows[0][0].group
    current = group.get("initial_lr", group["lr"]) if key == "lr" else group[key]
    unchanged: list[Any] = []  # the last value that is equal; most rows have the same
    for slot, values in rows:
        if key not in values:
            continue
        old = values.get("initial_lr", values["lr"]) if key == "lr" else values[key]
        if unchanged and old is unchanged[0]:
            continue
        if equal(old, current):
            unchanged = [old]
            continue
        mark = (key, repr(old), repr(current))
        if mark not in differences:
            known = plain(old), plain(current)
            differences[mark] = Difference(key, *known, [], is_taken)
        differences[mark].names.append(slot.name)


def equal(first: Any, second: Any) -> bool:
    """Whether two values are the same; a tensor equals the number that it holds."""
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        both_nan = first != first and second != second  # noqa: PLR0124 - NaN alone
        return bool(first == second or both_nan)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(equal(a, b) for a, b in pairs)
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        try:
            one, other = _of_one_precision(first, second)
            return one.shape == other.shape and one.tolist() == other.tolist()
        except (TypeError, ValueError, RuntimeError):
            return False
    return bool(first == second)


def _of_one_precision(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Return tensors, both as exact as the less exact one; a number is exact."""
    given = [torch.as_tensor(v, dtype=_exact(v)) for v in (first, second)]
    if all(each.is_floating_point() for each in given):
        dtype = min((each.dtype for each in given), key=lambda dtype: dtype.itemsize)
        given = [each.to(dtype) for each in given]
    return given[0], given[1]


def _exact(value: Any) -> torch.dtype | None:
    return torch.float64 if isinstance(value, float) else None


def plain(value: Any) -> Any:
    """Return the number that a tensor without dimensions holds."""
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value
