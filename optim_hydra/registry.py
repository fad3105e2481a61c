"""Own the registries: short names for classes, and builders for special classes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from optim_hydra.declared import DECLARED, NameTakenError, path_of, same_definition
from optim_hydra.errors import WrongObjectError
from optim_hydra.missing import DEFAULT_IMPL

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = [
    "builder_of",
    "packaged",
    "register_builder",
    "register_optimizer",
    "registered_class",
    "registered_optimizers",
]

ENTRY_POINTS = "optim_hydra.optimizers"
F = TypeVar("F", bound=Callable[..., Any])


def register_optimizer(name: str, target: str | type) -> None:
    """Let `optimizer: <name>` stand for a class, given itself or by its dotted path.

    The name is looked up while `optimizer_impl` is at its default, `torch.optim`. A
    package ships names of its own by the entry points `optim_hydra.optimizers`.

    Raises:
        NameTakenError: The name stands for another class already.
        WrongObjectError: An argument is of the wrong kind.

    Example:
        >>> register_optimizer("plain_sgd", "torch.optim.SGD")
        >>> registered_optimizers()["plain_sgd"]
        'torch.optim.SGD'

    """
    given: tuple[object, object] = (name, target)
    if not isinstance(given[0], str) or not isinstance(given[1], (str, type)):
        msg = f"register_optimizer takes a name and a class or its path, not {given}"
        raise WrongObjectError(msg)
    known = DECLARED.optimizers.get(name, target)
    if not same_definition(known, target):
        raise NameTakenError(_taken(name, path_of(known), path_of(target)))
    DECLARED.optimizers[name] = target


def register_builder(impl: str, name: str) -> Callable[[F], F]:
    """Register a function that calls the class `name` of the module `impl`.

    For classes that need more than parameters and keyword arguments, such as the model
    or a process group. It is called as `builder(cls, parameters, module, **arguments)`
    and returns the optimizer. `parameters` are what a torch class takes: named
    parameters or group dicts; `module` is what `build_optimizer` was given, None where
    that was no single module; `arguments` have been checked against the class.

    Raises:
        NameTakenError: Another function has been registered for the class.

    Example:
        >>> @register_builder("my_lab.optim", "DistributedSGD")
        ... def build(cls, parameters, module, **arguments):
        ...     return cls(parameters, process_group=None, **arguments)

    """

    def register(function: F) -> F:
        known = DECLARED.builders.get((impl, name), function)
        if not same_definition(known, function):
            where = f"{impl}.{name}"
            raise NameTakenError(_taken(where, path_of(known), path_of(function)))
        DECLARED.builders[impl, name] = function
        return function

    return register


def builder_of(cls: type[Optimizer]) -> Callable[..., Any] | None:
    """Return the function that was registered for a class."""
    for (impl, name), function in DECLARED.builders.items():
        if getattr(sys.modules.get(impl), name, None) is cls:
            return function
    return None


def registered_optimizers() -> dict[str, str]:
    """List the short names: those of the program and of installed packages.

    Returns:
        Name -> dotted path of the class, sorted by name.

    Raises:
        NameTakenError: Two packages, or a package and the program, claim one name.

    Example:
        >>> register_optimizer("plain_sgd", "torch.optim.SGD")
        >>> "plain_sgd" in registered_optimizers()
        True

    """
    names = {name: path_of(target) for name, target in DECLARED.optimizers.items()}
    for name in {entry.name for entry in _entry_points()}:
        names[name] = packaged(name) or ""
    return dict(sorted(names.items()))


def registered_class(name: str) -> str | type | None:
    """Return what a short name stands for; a class of torch.optim keeps its name.

    Raises:
        NameTakenError: Two classes claim the name.

    """
    own = DECLARED.optimizers.get(name)
    if hasattr(importlib.import_module(DEFAULT_IMPL), name):
        if own is None:
            return None
        msg = f"{name} is a class of {DEFAULT_IMPL} and is registered for"
        msg += f" {path_of(own)}: register another name"
        raise NameTakenError(msg)
    return own if "." in name else packaged(name) or own


def packaged(name: str) -> str | None:
    """Return the dotted path that an installed package has given a name to.

    Raises:
        NameTakenError: Two of them, or the program too, claim the name.

    """
    found = [entry for entry in _entry_points() if entry.name == name]
    if not found:
        return None
    claims: dict[str, str] = {
        entry.value.replace(":", "."): entry.dist.name if entry.dist else "a package"
        for entry in found
    }
    (path, package), *others = list(claims.items())
    if others:
        second = f"{others[0][0]} of {others[0][1]}"
        raise NameTakenError(_taken(name, f"{path} of {package}", second))
    own = DECLARED.optimizers.get(name, path)
    if path_of(own) != path:
        raise NameTakenError(_taken(name, f"{path} of {package}", path_of(own)))
    return path


def _entry_points() -> tuple[Any, ...]:
    from importlib import metadata  # noqa: PLC0415 - 20 ms that few runs need

    return tuple(metadata.entry_points(group=ENTRY_POINTS))


def _taken(name: str, known: str, other: str) -> str:
    return f"the name {name!r} stands for {known}; {other} needs another one"
