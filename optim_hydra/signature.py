"""Inspect an optimizer class once: which arguments it takes, with which defaults."""

from __future__ import annotations

import dis
import functools
import inspect
from dataclasses import dataclass
from typing import Any

from optim_hydra.declared import DECLARED

__all__ = ["Argument", "Signature", "signature_of"]

_EMPTY = inspect.Parameter.empty
_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Argument:
    """One named argument."""

    name: str
    default: Any
    annotation: str
    is_read: bool = True
    """Whether the constructor does anything with it."""

    @property
    def is_required(self) -> bool:
        """Whether a call has to give it."""
        return self.default is _EMPTY


@dataclass(frozen=True)
class Signature:
    """What a class takes: its first argument's name and the keyword arguments."""

    first: str
    arguments: dict[str, Argument]
    is_base: bool = False
    """Whether it wants `defaults`, as torch's own base class does."""


def _parameters_of(base: type) -> list[inspect.Parameter]:
    """Read one constructor without its `self`; nothing where that is impossible."""
    function = vars(base)["__init__"]
    try:
        if inspect.isfunction(function):
            return list(inspect.signature(function).parameters.values())[1:]
        bound = function.__get__(object.__new__(_Anything), _Anything)
        return list(inspect.signature(bound).parameters.values())
    except (TypeError, ValueError, AttributeError):
        return []


def _is_read(base: type, name: str) -> bool:
    """Whether a constructor's code reads an argument, as far as that can be told."""
    function = inspect.unwrap(vars(base)["__init__"])
    code = getattr(function, "__code__", None)
    if code is None or {"locals", "vars"} & set(code.co_names):
        return True
    for instruction in dis.get_instructions(code):
        names = instruction.argval
        names = names if isinstance(names, tuple) else (names,)
        if name in names and instruction.opname.startswith("LOAD"):
            return True
    return False


def _leads_on(base: type, parameter: inspect.Parameter) -> bool:
    """Whether a parameter takes further names, and the constructor does not drop them.

    What a `**kwargs` that is never read takes is lost.
    """
    is_open = parameter.kind is inspect.Parameter.VAR_KEYWORD
    return is_open and _is_read(base, parameter.name)


def _is_due(parameter: inspect.Parameter) -> bool:
    return parameter.default is _EMPTY


class _Anything:
    """Stand for the instance that a descriptor in place of `__init__` is bound to."""


def signature_of(cls: type) -> Signature:
    """Read the constructor, and those of the bases as far as `**kwargs` leads."""
    signature = _inspect(cls)
    declared = [n for base in cls.__mro__ for n in DECLARED.arguments.get(base, ())]
    if not declared:
        return signature
    further = {name: Argument(name, None, "") for name in declared}
    arguments = {**further, **signature.arguments}
    return Signature(signature.first, arguments, signature.is_base)


@functools.lru_cache(maxsize=1024)
def _inspect(cls: type) -> Signature:
    first, is_base = "", None
    arguments: dict[str, Argument] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = _parameters_of(base)
        if is_base is None:
            named = [p.name for p in parameters if p.kind in _NAMED and _is_due(p)]
            is_base = "defaults" in named
        if parameters and parameters[0].kind in _POSITIONAL:
            first = first or parameters[0].name
            parameters = parameters[1:]
        for parameter in [p for p in parameters if p.kind in _NAMED]:
            argument = Argument(
                parameter.name,
                parameter.default,
                "" if parameter.annotation is _EMPTY else str(parameter.annotation),
                _is_read(base, parameter.name),
            )
            arguments.setdefault(parameter.name, argument)
        if not any(_leads_on(base, parameter) for parameter in parameters):
            break
    arguments.pop(first, None)
    arguments.pop("defaults", None)  # torch's base class, never a config value
    return Signature(first or "params", arguments, bool(is_base))
