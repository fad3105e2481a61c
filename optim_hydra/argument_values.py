"""Fit one value to a constructor argument, by the argument's own default."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Collection
from typing import Any

from optim_hydra.signature import Argument
from optim_hydra.value_checks import Flag, Refused, shown, to_float

__all__ = ["fit_value"]

FLAG = Flag()
_NONE = {"None", "NoneType", "Optional", "Union", "typing"}
_SCALARS = {"bool": "a bool", "int": "an int", "float": "a float", "str": "text"}


def fit_value(value: Any, argument: Argument) -> Any:
    """Return the value in the kind that the argument's default has.

    Numeric text becomes a number where the default is one, lists become tuples
    where the default is a tuple, and lengths must agree; null stays null only
    where the default is null.

    Raises:
        Refused: The value is of another kind; the sentence says which is due.

    Example:
        >>> fit_value("1e-6", Argument("eps", 1e-8, "float"))
        1e-06

    """
    default = argument.default
    if argument.is_required or default is None:
        return _by_annotation(value, argument)
    if isinstance(default, bool):
        return FLAG(value)
    if isinstance(default, (int, float)):
        return _number(value, default, _words(argument))
    if isinstance(default, tuple):
        return _items(value, argument)
    if isinstance(default, str) and not isinstance(value, str):
        msg = f"{shown(value)} is not text such as {default!r}"
        raise Refused(msg)
    return value


def _words(argument: Argument) -> set[str]:
    return set(re.findall(r"\w+", argument.annotation)) - {"class"}


def _number(value: Any, default: float, words: Collection[str] = ()) -> Any:
    if _is_tensor(value):
        return value
    number = _real(value, whole=isinstance(default, int))
    if number is None:
        msg = f"{shown(value)} is not a number such as {default}"
        raise Refused(msg)
    as_float = to_float(number)
    if as_float is None or (math.isfinite(default) and not math.isfinite(as_float)):
        msg = f"{shown(number)} is not a finite number"
        raise Refused(msg)
    if isinstance(default, int) and isinstance(number, float):
        if number.is_integer():
            return int(number)
        if words == {"int"}:
            msg = f"{shown(number)} is not a whole number such as {default}"
            raise Refused(msg)
    return as_float if isinstance(default, float) else number


def _is_tensor(value: Any) -> bool:
    from torch import Tensor  # noqa: PLC0415 - torch only once a class is due

    return isinstance(value, Tensor)


def _real(value: Any, *, whole: bool) -> float | None:
    """Return a number, or text that is one, as an int or a float; else None."""
    if isinstance(value, str):
        return _from_text(value, whole=whole)
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    return float(value) if isinstance(value, numbers.Real) else None


def _from_text(value: str, *, whole: bool) -> float | None:
    """Return numeric text as a number: an int in full precision where one is due."""
    if whole:
        try:
            return int(value)
        except ValueError:
            pass
    return to_float(value)


def _items(value: Any, argument: Argument) -> tuple[Any, ...]:
    default = argument.default
    if not isinstance(value, (list, tuple)):
        example = list(default)
        msg = f"{shown(value)} is not a list of {len(default)} values such as {example}"
        raise Refused(msg)
    if len(value) != len(default):
        msg = (
            f"{argument.name} has {len(value)} of the {len(default)} values that the"
            f" class wants, such as {list(default)}"
        )
        raise Refused(msg)
    items = []
    # Where one default is a number, its null neighbour takes a number too.
    words = "float" if any(isinstance(item, float) for item in default) else ""
    for index, (item, example) in enumerate(zip(value, default, strict=True)):
        fitted = Argument(f"{argument.name}[{index}]", example, words)
        try:
            items.append(fit_value(item, fitted))
        except Refused as refused:
            raise Refused(str(refused), f"[{index}]{refused.index}") from None
    return tuple(items)


def _by_annotation(value: Any, argument: Argument) -> Any:
    """Fit a value whose default says nothing, by the words of the annotation."""
    words = _words(argument) - _NONE
    if value is None or "Literal" in words:
        return value
    if not isinstance(value, str):
        return _scalar(value, words)
    if "str" in words:
        return value
    if "float" in words:
        return _number(value, 0.0)
    if "int" in words:
        number = _number(value, 0)
        if isinstance(number, int):
            return number
        msg = f"{shown(value)} is not a whole number"
        raise Refused(msg)
    return FLAG(value) if "bool" in words else value


def _scalar(value: Any, words: set[str]) -> Any:
    """Return what is no text, checked where the annotation names plain kinds alone.

    Raises:
        Refused: It is of none of them, or no number at all.

    """
    if words == {"bool"}:
        return FLAG(value)
    if isinstance(value, float) and math.isnan(value):
        msg = f"{shown(value)} is not a number"
        raise Refused(msg)
    if not words or not words <= _SCALARS.keys():
        return value
    is_number = isinstance(value, numbers.Real) or _is_tensor(value)
    fits = bool(words & {"int", "float"}) and is_number
    if isinstance(value, bool):
        fits = "bool" in words
    elif isinstance(value, float) and words == {"int"}:
        fits = value.is_integer()
    if not fits:
        due = " or ".join(text for word, text in _SCALARS.items() if word in words)
        msg = f"{shown(value)} is not {due}"
        raise Refused(msg)
    return int(value) if words == {"int"} and isinstance(value, float) else value
