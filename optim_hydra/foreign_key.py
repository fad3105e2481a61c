"""Describe one key of another library, and what to write here instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ForeignKey", "name", "no_equal", "rate"]


@dataclass(frozen=True)
class ForeignKey:
    """A key of another library, and our key (or none) for the same wish."""

    key: str
    owner: str
    instead: str
    absolute_rate: bool = False
    """Whether the value becomes a share of lr."""
    renames: bool = False
    """Whether the value is the same under our key."""
    neutral: tuple[Any, ...] = ()
    """Values that change nothing: the key is then left out."""
    by_hand: bool = False
    """Whether its author has to decide, unless the value changes nothing."""
    common: bool = False
    """Whether the name is too common to be refused where nobody named the library."""

    def advice(self, node: Mapping[str, Any]) -> str:
        """Say what to write instead, with the converted value where it is known."""
        if not self.instead:
            return (
                f"{self.key} is a key of {self.owner} and has no equal here: remove it"
            )
        text = f"{self.key} is a key of {self.owner}: write {self.instead}"
        if not self.absolute_rate:
            return text
        ratio = _ratio(node.get(self.key), node.get("lr"))
        share = f" ({ratio} here)" if ratio else ""
        return f"{text}, a share of lr{share}, where {self.key} is an absolute rate"


def _ratio(rate: Any, lr: Any) -> str:
    try:
        return f"{float(rate) / float(lr):.6g}"
    except (TypeError, ValueError, ZeroDivisionError):
        return ""


def rate(key: str, owner: str, instead: str) -> ForeignKey:
    """Make a key whose absolute rate becomes a share of lr."""
    return ForeignKey(key, owner, instead, absolute_rate=True)


def name(key: str, owner: str, instead: str, *, common: bool = False) -> ForeignKey:
    """Make a key whose value stays the same under ours."""
    return ForeignKey(key, owner, instead, renames=True, common=common)


def no_equal(owner: str, **neutral: tuple[Any, ...]) -> list[ForeignKey]:
    """Make keys that have no equal, each with the values that change nothing."""
    return [
        ForeignKey(key, owner, "", neutral=values) for key, values in neutral.items()
    ]
