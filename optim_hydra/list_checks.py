"""Check lists and mappings of values, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optim_hydra.value_checks import Choice, Real, Refused, Text, shown

__all__ = ["Items", "Reals", "Texts"]

# Sequences too, of letters and of numbers, but never meant as lists.
_TEXTS = (str, bytes, bytearray)


@dataclass(eq=False, repr=False)
class Reals:
    """A list of at least two floats, each of which passes one check."""

    each: Real

    def __call__(self, value: Any) -> tuple[float, ...]:
        """Return the values as a tuple of floats.

        Raises:
            Refused: It is no list, too short, or an element is refused.

        """
        if isinstance(value, _TEXTS) or not isinstance(value, Sequence):
            msg = f"{shown(value)} is not a list of floats: write [0.9, 0.999]"
            raise Refused(msg)
        if len(value) < 2:  # noqa: PLR2004 - no public class has a single beta
            msg = f"{shown(list(value))} is too short: write [0.9, 0.999]"
            raise Refused(msg)
        result = []
        for index, item in enumerate(value):
            try:
                result.append(self.each(item))
            except Refused as refused:
                raise Refused(str(refused), f"[{index}]") from None
        return tuple(number for number in result if number is not None)


@dataclass(eq=False, repr=False)
class Texts:
    """A list of texts, each one of a few words where these are given."""

    words: tuple[str, ...] = ()
    single: bool = False
    """Whether one text without a list will do."""
    example: str = ""

    def __call__(self, value: Any) -> list[str]:
        """Return the value as a list.

        Raises:
            Refused: It is no list, or an element is refused.

        """
        if isinstance(value, str) and self.single:
            value = [value]
        example = self.example or f"[{', '.join(self.words[:2])}]"
        if isinstance(value, _TEXTS) or not isinstance(value, Sequence):
            msg = f"{shown(value)} is not a list of words: write {example}"
            raise Refused(msg)
        check = Choice(self.words) if self.words else Text(example)
        for index, item in enumerate(value):
            try:
                check(item)
            except Refused as refused:
                raise Refused(str(refused), f"[{index}]") from None
        return list(value)


@dataclass(eq=False, repr=False)
class Items:
    """A mapping with text keys; null is an empty one."""

    def __call__(self, value: Any) -> dict[str, Any]:
        """Return the value as a plain dict.

        Raises:
            Refused: It is no mapping.

        """
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {str(key): item for key, item in value.items()}
        msg = f"{shown(value)} is not a mapping: write {{name: value}}"
        raise Refused(msg)
