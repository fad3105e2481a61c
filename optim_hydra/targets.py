"""Turn (impl, name) into one checked optimizer class."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from optim_hydra.declared import DECLARED, NameTakenError, is_path
from optim_hydra.errors import Problems, TargetError, nearest, told
from optim_hydra.missing import (
    DEFAULT_IMPL,
    DISTRIBUTIONS,
    is_optimizer_class,
    no_such_class,
    not_installed,
    optimizer_names,
)
from optim_hydra.registry import registered_class

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = [
    "Target",
    "load_class",
    "load_module",
    "plain_target",
    "resolve_target",
]


@dataclass(frozen=True)
class Target:
    """A module and a class name in it, as text, with the keys that set them."""

    impl: str
    name: str
    impl_key: str = "optimizer_impl"
    name_key: str = "optimizer"
    found: type | None = None
    """The class itself, where the program registered it."""

    def __str__(self) -> str:
        """Return the dotted path."""
        return f"{self.impl}.{self.name}"


def resolve_target(impl: str, name: str, problems: Problems) -> Target | None:
    """Read the two fields: a class name, a registered short name or a dotted path."""
    registered = None
    if impl == DEFAULT_IMPL:
        # A short name stands for itself where no module was chosen.
        try:
            registered = registered_class(name)
        except NameTakenError as error:
            problems.add(str(error), "optimizer", TargetError)
            return None
    if isinstance(registered, type):
        return Target(registered.__module__, registered.__qualname__, found=registered)
    dotted = registered or name
    for text, key in ((impl, "optimizer_impl"), (dotted, "optimizer")):
        if not is_path(text):
            what = f"{text!r} is neither a Python name nor a dotted path of them"
            problems.add(what, key, TargetError)
            return None
    module, _, last = dotted.rpartition(".")
    if not module:
        return Target(impl, name)
    if impl not in (DEFAULT_IMPL, module):
        what = (
            f"{name} is in {module}, but optimizer_impl is {impl}: write"
            f" optimizer_impl={module} optimizer={last}"
        )
        problems.add(what, "optimizer", TargetError)
        return None
    return Target(module, last, impl_key="optimizer")


def plain_target(path: str, problems: Problems) -> Target | None:
    """Read the `_target_` of a plain Hydra node."""
    impl, _, name = path.rpartition(".")
    if not (impl and is_path(path)):
        what = f"{path!r} is no dotted path of a class: write torch.optim.SGD, or"
        problems.add(f"{what} optimizer: SGD without _target_", "_target_", TargetError)
        return None
    return Target(impl, name, "_target_", "_target_")


def load_class(target: Target, problems: Problems) -> type[Optimizer] | None:
    """Import the module and take the class out of it; note why it can't be had.

    Nothing is called. The object itself must be an optimizer class, whatever the
    text said.
    """
    if target.found is not None:
        return _check_class(target.found, target, None, problems)
    module = load_module(target, problems)
    return None if module is None else _take_class(module, target, problems)


def load_module(target: Target, problems: Problems) -> ModuleType | None:
    """Import the module, if the program allows it; note why it can't be had."""
    allowed_impls = DECLARED.allowed_impls
    if allowed_impls is not None and target.impl not in allowed_impls:
        allowed = ", ".join(sorted(allowed_impls)) or "none"
        what = f"{target.impl} is not among the modules this program allows: {allowed};"
        what += " the program itself adds one by set_allowed_impls"
        problems.add(what, target.impl_key, TargetError)
        return None
    try:
        module: ModuleType | None = importlib.import_module(target.impl)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code runs here
        what = f"{target.impl} fails while it is imported: {told(error)}"
        if isinstance(error, ModuleNotFoundError) and error.name:
            what = _missing(target, error.name)
        problems.add(what, target.impl_key, TargetError, error)
        return None
    if module is None:
        what = f"{target.impl} leaves nothing in its place once it is imported"
        problems.add(what, target.impl_key, TargetError)
    return module


def _missing(target: Target, missing: str) -> str:
    if target.impl == missing or target.impl.startswith(f"{missing}."):
        return not_installed(target.impl, missing, target.impl_key)
    package = DISTRIBUTIONS.get(missing.partition(".")[0])
    advice = f"pip install {package}" if package else "install its package"
    what = f"{target.impl} needs the module {missing}, which is not installed:"
    return f"{what} {advice}"


def _take_class(
    module: ModuleType, target: Target, problems: Problems
) -> type[Optimizer] | None:
    try:
        found: Any = getattr(module, target.name)
    except AttributeError:
        what = no_such_class(module, target.impl, target.name, target.impl_key)
        problems.add(what, target.name_key, TargetError)
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its __getattr__ runs
        what = f"{target} can't be had: {told(error)}"
        problems.add(what, target.name_key, TargetError, error)
        return None
    return _check_class(found, target, module, problems)


def _check_class(
    found: object, target: Target, module: ModuleType | None, problems: Problems
) -> type[Optimizer] | None:
    from torch.optim import Optimizer  # noqa: PLC0415 - torch only once a class is due

    if not is_optimizer_class(found):
        kind = "class" if issubclass(type(found), type) else type(found).__name__
        what = f"{target} is a {kind} and no torch.optim.Optimizer"
        names = [] if module is None else optimizer_names(module)
        near = nearest(target.name, names) or ": choose a subclass such as AdamW"
        problems.add(what + near, target.name_key, TargetError)
        return None
    if found is Optimizer:
        what = "torch.optim.Optimizer is the base class: choose one such as AdamW"
        problems.add(what, target.name_key, TargetError)
        return None
    unreadable = _unreadable(found)
    if unreadable:
        problems.add(f"{target} {unreadable}", target.name_key, TargetError)
        return None
    return cast("type[Optimizer]", found)


def _unreadable(cls: Any) -> str:
    """Say why a class can't be told from others; nothing where it can."""
    try:
        words = (cls.__module__, cls.__name__, cls.__qualname__)
        hash((cls, cls.__mro__))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its metaclass runs
        return f"can't be read: {told(error)}"
    if all(isinstance(word, str) for word in words):
        return ""
    return "can't be read: its module and names are no texts"
