"""Inspect an optimizer class once: which arguments it takes, with which defaults."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Any

__all__ = ["Argument", "Signature", "declare_arguments", "signature_of"]

_EMPTY = inspect.Parameter.empty
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_declared: dict[type, dict[str, Argument]] = {}


@dataclass(frozen=True)
class Argument:
    """One named argument; `default` is `Argument.required` where it has none."""

    name: str
    default: Any
    annotation: str

    required = _EMPTY

    @property
    def is_required(self) -> bool:
        """Whether a call has to give it."""
        return self.default is _EMPTY


@dataclass(frozen=True)
class Signature:
    """What a class takes: its first argument's name and the keyword arguments."""

    first: str
    arguments: dict[str, Argument]


def declare_arguments(cls: type, *names: str) -> None:
    """Let a class with `**kwargs` take further names that its signature hides.

    Without this, `**kwargs` is closed: many public classes swallow any misspelt
    word there.

    Example:
        >>> class MyAdam:
        ...     def __init__(self, params, lr=1e-3, **kwargs): ...
        >>> declare_arguments(MyAdam, "warm_start")

    """
    known = _declared.setdefault(cls, {})
    known.update({name: Argument(name, None, "") for name in names})
    signature_of.cache_clear()


@functools.lru_cache(maxsize=1024)
def signature_of(cls: type) -> Signature:
    """Read the constructor, and those of the bases as far as `**kwargs` leads."""
    first = ""
    arguments: dict[str, Argument] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())
        named = [p for p in parameters[1:] if p.kind in _NAMED]
        if named and named[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            first = first or named[0].name
            named = named[1:]
        for parameter in named:
            argument = Argument(
                parameter.name,
                parameter.default,
                "" if parameter.annotation is _EMPTY else str(parameter.annotation),
            )
            arguments.setdefault(parameter.name, argument)
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    for base in cls.__mro__:
        for name, argument in _declared.get(base, {}).items():
            arguments.setdefault(name, argument)
    arguments.pop(first, None)
    arguments.pop("defaults", None)  # torch's base class, never a config value
    return Signature(first or "params", arguments)
