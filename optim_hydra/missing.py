"""Word what is missing when a class can't be had, and what to install or write."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from optim_hydra.declared import DECLARED
from optim_hydra.errors import nearest

__all__ = [
    "DEFAULT_IMPL",
    "DISTRIBUTIONS",
    "is_optimizer_class",
    "no_such_class",
    "not_installed",
    "optimizer_names",
]

DEFAULT_IMPL = "torch.optim"

# Import name -> distribution. A name that is not here is not guessed: several short
# names on the package index belong to unrelated projects.
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


def not_installed(impl: str, missing: str, key: str) -> str:
    """Say which module is missing, and the package to install where it is known.

    Args:
        impl: The module that was asked for.
        missing: It, or the part of its path that does not exist.
        key: The config key that named it.

    """
    parent, _, last = missing.rpartition(".")
    if parent:
        if is_optimizer_class(getattr(sys.modules.get(parent), last, None)):
            whole = missing if key == "_target_" else f"optimizer_impl={parent}"
            instead = whole + f" optimizer={last}" * (key != "_target_")
            return f"{missing} is a class and no module: write {instead}"
        names = [name for name in sys.modules if name.rpartition(".")[0] == parent]
        near = nearest(last, [name.rpartition(".")[2] for name in names])
        return f"the module {impl} does not exist: {parent} has no {last}{near}"
    if missing in DISTRIBUTIONS:
        return (
            f"the module {impl} is not installed: pip install {DISTRIBUTIONS[missing]}"
        )
    near = nearest(missing, ["torch", *DISTRIBUTIONS])
    return f"the module {impl} is not installed{near or ': install its package'}"


def no_such_class(module: ModuleType, impl: str, name: str, key: str) -> str:
    """Say what a module lacks, the nearest names, and who has the class.

    Args:
        module: What was imported.
        impl: Its name.
        name: The class that it does not have.
        key: The config key that named the module.

    """
    short = DECLARED.optimizers if impl == DEFAULT_IMPL else ()
    near = nearest(name, [*optimizer_names(module), *short])
    typed = f"{key}=" if key == "optimizer_impl" else ""
    text = f"{typed}{impl}{_version(impl)} was imported but has no {name}{near}"
    if name in DECLARED.optimizers:
        return f"{text}; for the registered name leave optimizer_impl at {DEFAULT_IMPL}"
    others = [
        other
        for other in (f"{impl}.optim", DEFAULT_IMPL, "torchao.optim", *DISTRIBUTIONS)
        if isinstance(sys.modules.get(other), ModuleType)
        and other != impl
        and name in optimizer_names(sys.modules[other])
    ]
    if others:
        return f"{text}; {others[0]} has one: optimizer_impl={others[0]}"
    return text if near else text + _group_of(name)


def optimizer_names(module: ModuleType) -> list[str]:
    """Return the names of the optimizer classes in a module, the base left out."""
    from torch.optim import Optimizer  # noqa: PLC0415 - torch only once a class is due

    if not issubclass(type(module), ModuleType):
        return []  # what some modules put in their own place
    return [
        name
        for name, value in vars(module).items()
        if is_optimizer_class(value) and value is not Optimizer
    ]


def is_optimizer_class(thing: object) -> bool:
    """Whether something is an optimizer class.

    By what it is: an object can lie about its class, and a class about its bases.
    """
    from torch.optim import Optimizer  # noqa: PLC0415 - torch only once a class is due

    if not issubclass(type(thing), type):
        return False
    bases: tuple[type, ...] = vars(type)["__mro__"].__get__(thing)
    return any(base is Optimizer for base in bases)  # a metaclass can own `==`


def _group_of(name: str) -> str:
    """Point at the shipped group of a name that is no class."""
    folders = importlib.import_module("optim_hydra.conf").__path__
    files = [file for folder in folders for file in Path(folder).glob("optim/*.yaml")]
    if name.lower() not in {file.stem for file in files}:
        return ""
    return f": the group of that name is chosen by optim@MODULE.optim={name.lower()}"


def _version(impl: str) -> str:
    from importlib import metadata  # noqa: PLC0415 - 20 ms that only an error pays

    top = impl.partition(".")[0]
    try:
        return f" ({top} {metadata.version(DISTRIBUTIONS.get(top, top))})"
    except metadata.PackageNotFoundError:
        return ""
