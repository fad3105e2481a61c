"""Fit one value to a constructor argument, by the argument's own default."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from optim_hydra.signature import Argument
from optim_hydra.value_checks import Flag, Refused, shown, to_float

__all__ = ["fit_value"]

FLAG = Flag()


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
    if isinstance(value, (str, bool, tuple, list, dict)) or value is None:
        number = _from_text(value, whole=isinstance(default, int))
        if number is None:
            msg = f"{shown(value)} is not a number such as {default}"
            raise Refused(msg)
        value = number
    if isinstance(value, (int, float)):
        number = to_float(value)
        if number is None or (math.isfinite(default) and not math.isfinite(number)):
            msg = f"{shown(value)} is not a finite number"
            raise Refused(msg)
        if isinstance(default, int) and isinstance(value, float):
            if value.is_integer():
                return int(value)
            if words == {"int"}:
                msg = f"{shown(value)} is not a whole number such as {default}"
                raise Refused(msg)
        return to_float(value) if isinstance(default, float) else value
    return value  # a tensor, where a class takes one


def _from_text(value: Any, *, whole: bool) -> float | None:
    """Return numeric text as a number: an int in full precision where one is due."""
    if not isinstance(value, str):
        return None
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
    words = _words(argument)
    if value is None or "Literal" in words:
        return value
    if "bool" in words and words <= {"bool", "None", "NoneType", "Optional", "typing"}:
        return FLAG(value)
    if not isinstance(value, str) or "str" in words:
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
