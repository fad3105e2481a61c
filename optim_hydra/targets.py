"""Turn (impl, name) into one checked optimizer class."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from optim_hydra.declared import DECLARED, path_of
from optim_hydra.errors import Problems, TargetError, nearest

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = ["Target", "load_class", "resolve_target"]

DEFAULT_IMPL = "torch.optim"

# Import names whose distribution is called otherwise; several short names on the
# package index belong to unrelated projects, so nothing is guessed.
DISTRIBUTIONS: dict[str, str] = {
    "adam_mini": "adam-mini",
    "apollo_torch": "apollo-torch",
    "bitsandbytes": "bitsandbytes",
    "came_pytorch": "came-pytorch",
    "dadaptation": "dadaptation",
    "galore_torch": "galore-torch",
    "heavyball": "heavyball",
    "kron_torch": "kron-torch",
    "lion_pytorch": "lion-pytorch",
    "lomo_optim": "lomo-optim",
    "madgrad": "madgrad",
    "optimi": "torch-optimi",
    "prodigyopt": "prodigyopt",
    "pytorch_optimizer": "pytorch_optimizer",
    "schedulefree": "schedulefree",
    "timm": "timm",
    "torch_optimizer": "torch-optimizer",
    "torchao": "torchao",
    "transformers": "transformers",
}


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
    # A short name stands for itself where no module was chosen.
    registered = DECLARED.optimizers.get(name) if impl == DEFAULT_IMPL else None
    if registered and hasattr(importlib.import_module(DEFAULT_IMPL), name):
        what = (
            f"{name} is a class of {DEFAULT_IMPL} and is registered for"
            f" {path_of(registered)}: register another name"
        )
        problems.add(what, "optimizer", TargetError)
        return None
    if isinstance(registered, type):
        return Target(registered.__module__, registered.__qualname__, found=registered)
    dotted = registered or name
    for text, key in ((impl, "optimizer_impl"), (dotted, "optimizer")):
        if not all(part.isidentifier() for part in text.split(".")):
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


def load_class(target: Target, problems: Problems) -> type[Optimizer] | None:
    """Import the module and take the class out of it; note why it can't be had.

    Nothing is called. The object itself must be an optimizer class, whatever the
    text said.
    """
    if target.found is not None:
        return _check_class(target.found, target, [], problems)
    allowed_impls = DECLARED.allowed_impls
    if allowed_impls is not None and target.impl not in allowed_impls:
        allowed = ", ".join(sorted(allowed_impls))
        what = f"{target.impl} is not among the modules this program allows: {allowed}"
        problems.add(what, target.impl_key, TargetError)
        return None
    module = _import_module(target, problems)
    return None if module is None else _take_class(module, target, problems)


def _import_module(target: Target, problems: Problems) -> ModuleType | None:
    try:
        return importlib.import_module(target.impl)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if target.impl == missing or target.impl.startswith(f"{missing}."):
            what = _not_found(target.impl, missing)
        else:
            what = f"{target.impl} needs the module {missing}, which is not installed"
        problems.add(what, target.impl_key, TargetError, error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code runs here
        what = (
            f"{target.impl} fails while it is imported: {type(error).__name__}: {error}"
        )
        problems.add(what, target.impl_key, TargetError, error)
    return None


def _not_found(impl: str, missing: str) -> str:
    parent, _, last = missing.rpartition(".")
    if parent:
        names = [name for name in sys.modules if name.rpartition(".")[0] == parent]
        near = nearest(last, [name.rpartition(".")[2] for name in names])
        return f"the module {impl} does not exist: {parent} has no {last}{near}"
    if missing in DISTRIBUTIONS:
        return (
            f"the module {impl} is not installed: pip install {DISTRIBUTIONS[missing]}"
        )
    near = nearest(missing, [DEFAULT_IMPL.partition(".")[0], *DISTRIBUTIONS])
    return f"the module {impl} is not installed{near or ': install its package'}"


def _take_class(
    module: ModuleType, target: Target, problems: Problems
) -> type[Optimizer] | None:
    try:
        found: Any = getattr(module, target.name)
    except AttributeError:
        problems.add(_no_such_class(module, target), target.name_key, TargetError)
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its __getattr__ runs
        what = f"{target} can't be had: {type(error).__name__}: {error}"
        problems.add(what, target.name_key, TargetError, error)
        return None
    return _check_class(found, target, optimizer_names(module), problems)


def _check_class(
    found: object, target: Target, names: list[str], problems: Problems
) -> type[Optimizer] | None:
    from torch.optim import Optimizer  # noqa: PLC0415 - torch only once a class is due

    if not (isinstance(found, type) and issubclass(found, Optimizer)):
        kind = "class" if isinstance(found, type) else type(found).__name__
        what = f"{target} is a {kind} and no torch.optim.Optimizer"
        near = nearest(target.name, names)
        problems.add(what + near, target.name_key, TargetError)
        return None
    if found is Optimizer:
        what = "torch.optim.Optimizer is the base class: choose one such as AdamW"
        problems.add(what, target.name_key, TargetError)
        return None
    return found


def _no_such_class(module: ModuleType, target: Target) -> str:
    near = nearest(target.name, [*optimizer_names(module), *DECLARED.optimizers])
    text = (
        f"{target.impl_key}={target.impl}{_version(target.impl)} was imported but has"
        f" no {target.name}{near}"
    )
    others = [
        impl
        for impl in (
            f"{target.impl}.optim",
            DEFAULT_IMPL,
            "torchao.optim",
            *DISTRIBUTIONS,
        )
        if isinstance(sys.modules.get(impl), ModuleType)
        and impl != target.impl
        and target.name in optimizer_names(sys.modules[impl])
    ]
    if others:
        return f"{text}; {others[0]} has one: optimizer_impl={others[0]}"
    return text if near else text + _group_of(target.name)


def optimizer_names(module: ModuleType) -> list[str]:
    """Return the names of the optimizer classes in a module, the base left out."""
    from torch.optim import Optimizer  # noqa: PLC0415 - torch only once a class is due

    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Optimizer)
        and value is not Optimizer
    ]


def _group_of(name: str) -> str:
    """Point at the shipped group of a name that is no class."""
    folders = importlib.import_module("optim_hydra.conf").__path__
    file = f"optim/{name.lower()}.yaml"
    if not any((Path(folder) / file).is_file() for folder in folders):
        return ""
    return f": the group of that name is chosen by optim@MODULE.optim={name.lower()}"


def _version(impl: str) -> str:
    from importlib import metadata  # noqa: PLC0415 - 20 ms that only an error pays

    top = impl.partition(".")[0]
    try:
        return f" ({top} {metadata.version(DISTRIBUTIONS.get(top, top))})"
    except metadata.PackageNotFoundError:
        return ""
