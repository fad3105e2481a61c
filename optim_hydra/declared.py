"""Hold what a program declares from Python, and carry it to a launcher's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.errors import OptimHydraError, WrongObjectError

__all__ = [
    "DECLARED",
    "Declared",
    "NameTakenError",
    "declare_arguments",
    "set_allowed_impls",
]


class NameTakenError(OptimHydraError, ValueError):
    """Two classes, or two functions, claim one name."""


@dataclass
class Declared:
    """Names and limits that a program sets; nothing here comes from a config."""

    optimizers: dict[str, str | type] = field(default_factory=dict)
    """Short name -> class, or its dotted path."""
    builders: dict[tuple[str, str], Callable[..., Any]] = field(default_factory=dict)
    """(impl, name) -> function that calls the class."""
    schedules: dict[str, Callable[..., float]] = field(default_factory=dict)
    """Value of `lr_scheduler_type` -> function."""
    arguments: dict[type, tuple[str, ...]] = field(default_factory=dict)
    """Class -> names that its signature hides."""
    allowed_impls: frozenset[str] | None = None
    """Modules that may be imported; None: all."""

    def adopt(self, other: Declared) -> None:
        """Take over what another process declared."""
        self.optimizers.update(other.optimizers)
        self.builders.update(other.builders)
        self.schedules.update(other.schedules)
        self.arguments.update(other.arguments)
        if self.allowed_impls is None:
            self.allowed_impls = other.allowed_impls


DECLARED = Declared()


def is_path(text: str) -> bool:
    """Whether a text is a Python name, or a dotted path of them."""
    return all(part.isidentifier() for part in text.split("."))


def path_of(thing: object) -> str:
    """Return where a class or function is defined; text is a path already."""
    if isinstance(thing, str):
        return thing
    name = getattr(thing, "__qualname__", None) or repr(thing)
    return f"{getattr(thing, '__module__', '')}.{name}"


def same_definition(first: object, second: object) -> bool:
    """Whether two objects come from one place of the source.

    A module that is run again or reloaded makes new objects of the same place, and a
    script is called `__main__` when it is run.
    """
    if first is second:
        return True
    paths = [path_of(first), path_of(second)]
    codes = [getattr(thing, "__code__", None) for thing in (first, second)]
    files = [getattr(code, "co_filename", "") for code in codes]
    if files[0] != files[1] or "<lambda>" in paths[0]:
        return False
    if any(path.startswith("__main__.") for path in paths):
        paths = [path.rpartition(".")[2] for path in paths]
    return paths[0] == paths[1]


def set_allowed_impls(impls: str | Iterable[str] | None) -> None:
    """Import optimizers from these modules only; None (the default) allows every one.

    Meant for programs that run configs of others. It is set from Python and never
    from a config; `optim_hydra.main` carries it to the workers of every launcher.

    Raises:
        WrongObjectError: One of them is no name of a module, such as `torch.*`.

    Example:
        >>> set_allowed_impls(["torch.optim", "torchao.optim"])
        >>> set_allowed_impls(None)

    """
    if impls is None:
        DECLARED.allowed_impls = None
        return
    is_list = isinstance(impls, Iterable) and not isinstance(impls, (str, bytes))
    names: list[Any] = list(impls) if is_list else [impls]
    for name in names:
        if not (isinstance(name, str) and is_path(name)):
            msg = "set_allowed_impls takes whole names of modules, such as torch.optim,"
            msg += f" not {name!r}"
            raise WrongObjectError(msg)
    DECLARED.allowed_impls = frozenset(names)


def declare_arguments(cls: type, *names: str) -> None:
    """Let a class with `**kwargs` take further names that its signature hides.

    Without this, `**kwargs` is closed: many public classes swallow any misspelt
    word there.

    Example:
        >>> class MyAdam:
        ...     def __init__(self, params, lr=1e-3, **kwargs): ...
        >>> declare_arguments(MyAdam, "warm_start")

    """
    DECLARED.arguments[cls] = (*DECLARED.arguments.get(cls, ()), *names)
