"""Check single values: kinds, ranges, text that is a number."""

from __future__ import annotations

import contextlib
import math
import numbers
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Choice",
    "Count",
    "Flag",
    "Real",
    "Refused",
    "Text",
    "is_open",
    "shown",
    "to_float",
]


class Refused(Exception):  # noqa: N818 - never leaves the package
    """A value is not accepted; the text says what is accepted, and `[i]` where."""

    def __init__(self, what: str, index: str = "") -> None:
        """Keep the place inside a list, such as `[1]`, beside the sentence."""
        super().__init__(what)
        self.index = index


def shown(value: Any) -> str:
    """Show a given value, with its type where the text alone would mislead."""
    if isinstance(value, str):
        return repr(value)
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float, list, tuple, dict)):
        # Python writes no int of more than 4300 digits.
        with contextlib.suppress(ValueError):
            return str(value)
    return f"a {type(value).__name__}"


# Without the methods that nobody calls: every start of a program makes these classes.
@dataclass(eq=False, repr=False)
class Real:
    """A finite float in a range; numeric text is converted."""

    low: float = 0.0
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    null: bool = False
    hint: str = ""
    low_hint: str = ""
    null_hint: str = ""

    def __call__(self, value: Any) -> float | None:
        """Return the value as a float.

        Raises:
            Refused: It is no number, not finite or out of range.

        """
        if value is None:
            if self.null:
                return None
            what = f"null is not allowed where a float is due: {self.null_hint}"
            raise Refused(what.rstrip(": "))
        number = to_float(value)
        if number is None:
            msg = f"{shown(value)} is not a float"
            raise Refused(msg)
        below = number <= self.low if self.open_low else number < self.low
        above = number >= self.high if self.open_high else number > self.high
        if not math.isfinite(number) or below or above:
            hint = self.hint if above else self.low_hint if below else ""
            hint = f": {hint}" if hint else ""
            msg = f"{shown(value)} is not {self.range_text()}{hint}"
            raise Refused(msg)
        return number

    def range_text(self) -> str:
        """Describe the accepted range, such as `a float in [0, 1]`."""
        if self.high == math.inf:
            sign = ">" if self.open_low else ">="
            return f"a finite float {sign} {self.low:g}"
        left = "(" if self.open_low else "["
        right = ")" if self.open_high else "]"
        return f"a float in {left}{self.low:g}, {self.high:g}{right}"


@dataclass(eq=False, repr=False)
class Count:
    """A whole number; `1e3` and `10.0` count as whole, `10.5` and true do not."""

    low: int
    null: bool = False
    also: tuple[int, ...] = ()

    def __call__(self, value: Any) -> int | None:
        """Return the value as an int.

        Raises:
            Refused: It is no whole number or out of range.

        """
        if value is None and self.null:
            return None
        number = to_float(value)
        if number is None or not number.is_integer():
            msg = f"{shown(value)} is not an int: write a whole number such as 1000"
            raise Refused(msg)
        if number < self.low and number not in self.also:
            also = "".join(f"{n} or " for n in self.also)
            msg = f"{shown(value)} is not {also}an int >= {self.low}"
            raise Refused(msg)
        return int(number)


@dataclass(eq=False, repr=False)
class Flag:
    """True or false, nothing else."""

    def __call__(self, value: Any) -> bool:
        """Return the value.

        Raises:
            Refused: It is not a bool.

        """
        if isinstance(value, bool):
            return value
        msg = f"{shown(value)} is not a bool: write true or false"
        raise Refused(msg)


@dataclass(eq=False, repr=False)
class Text:
    """Text that is not empty."""

    example: str = "AdamW"

    def __call__(self, value: Any) -> str:
        """Return the value.

        Raises:
            Refused: It is no text, or empty.

        """
        if isinstance(value, str) and value.strip():
            return value
        msg = f"{shown(value)} is not a name: write one such as {self.example}"
        raise Refused(msg)


@dataclass(eq=False, repr=False)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    null: bool = False
    hint: str = ""

    def __call__(self, value: Any) -> str | None:
        """Return the value.

        Raises:
            Refused: It is none of the words.

        """
        if value in self.words or (value is None and self.null):
            return value  # type: ignore[no-any-return]
        hint = f"; {self.hint}" if self.hint else ""
        msg = f"{shown(value)} is not one of {', '.join(self.words)}{hint}"
        raise Refused(msg)


def is_open(value: Any) -> bool:
    """Whether a value is left for Hydra to fill: `???` or a reference."""
    return isinstance(value, str) and ("${" in value or value == "???")


def to_float(value: Any) -> float | None:
    """Return a number, numeric text or numpy scalar as a float, else None."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
