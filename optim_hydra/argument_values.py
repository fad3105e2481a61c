"""Fit one value to a constructor argument, by the argument's own default."""

from __future__ import annotations

from typing import Any

from optim_hydra.rules import Refused, shown, to_float
from optim_hydra.signature import Argument

__all__ = ["fit_value"]


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
    if default is Argument.required or default is None:
        return _by_annotation(value, argument)
    if isinstance(default, bool):
        return _flag(value)
    if isinstance(default, (int, float)):
        return _number(value, default)
    if isinstance(default, tuple):
        return _items(value, argument)
    if isinstance(default, str) and not isinstance(value, str):
        msg = f"{shown(value)} is not text such as {default!r}"
        raise Refused(msg)
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    msg = f"{shown(value)} is not a bool: write true or false"
    raise Refused(msg)


def _number(value: Any, default: float) -> Any:
    if isinstance(value, (tuple, list)) or value is None:
        msg = f"{shown(value)} is not a number such as {default}"
        raise Refused(msg)
    number = to_float(value)
    if number is None:
        if isinstance(value, (str, bool)):
            msg = f"{shown(value)} is not a number such as {default}"
            raise Refused(msg)
        return value
    if isinstance(value, int) or (isinstance(default, int) and number.is_integer()):
        return int(number) if isinstance(default, int) else number
    return number


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
    for index, (item, example) in enumerate(zip(value, default, strict=True)):
        fitted = Argument(f"{argument.name}[{index}]", example, "")
        try:
            items.append(fit_value(item, fitted))
        except Refused as refused:
            raise Refused(str(refused), f"[{index}]{refused.index}") from None
    return tuple(items)


def _by_annotation(value: Any, argument: Argument) -> Any:
    words = argument.annotation
    if not isinstance(value, str) or "str" in words:
        return value
    number = to_float(value)
    if "bool" in words:
        return _flag(value)
    if number is not None and ("float" in words or "int" in words):
        return number if "float" in words else int(number)
    if number is None and ("float" in words or "int" in words):
        msg = f"{shown(value)} is not a number"
        raise Refused(msg)
    return value
