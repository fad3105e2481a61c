"""Find the optimizer classes of the packages that are installed here."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from types import ModuleType
from typing import Any

from torch.optim import Optimizer

from optim_hydra.errors import told
from optim_hydra.missing import DEFAULT_IMPL, DISTRIBUTIONS, optimizer_names

__all__ = ["MODULES", "Package", "catalogue", "names_package", "quiet", "version_of"]

# Where packages keep their classes, if not at the top.
_INSIDE = {
    "bitsandbytes": "bitsandbytes.optim",
    "timm": "timm.optim",
    "torchao": "torchao.optim",
    "transformers": "transformers.optimization",
}
MODULES = (DEFAULT_IMPL, *(_INSIDE.get(name, name) for name in DISTRIBUTIONS))


@dataclass
class Package:
    """A module with optimizer classes, or what became of its import."""

    impl: str
    version: str = ""
    classes: dict[str, type[Optimizer]] = field(default_factory=dict)
    """Those that match."""
    names: list[str] = field(default_factory=list)
    """Of all its classes."""
    failure: str = ""
    """Why it can't be imported, though it is installed."""
    install: str = ""
    """The distribution to install, where it is not."""


def catalogue(pattern: str = "*") -> list[Package]:
    """Return the packages that a pattern may mean, with the classes that match it.

    Args:
        pattern: With `*`, `?` and `[...]`, of a dotted path (`torch.*`), else of the
            name of a class (`adam*`) or of a package, all of whose classes match then
            (`schedulefree`); case counts in none. Only packages that a dotted pattern
            may mean are imported.

    """
    wanted = pattern.lower()
    packages = []
    for impl in MODULES:
        if not _may_hold(impl, wanted):
            continue
        package = _read(impl)
        package.names = sorted(package.classes)
        package.classes = {
            name: package.classes[name]
            for name in package.names
            if any(fnmatch.fnmatchcase(n.lower(), wanted) for n in _names(impl, name))
        }
        packages.append(package)
    return packages


def version_of(impl: str) -> str:
    """Return the version of the distribution that has a module; nothing if unknown."""
    top = impl.partition(".")[0]
    try:
        return metadata.version(DISTRIBUTIONS.get(top, top))
    except metadata.PackageNotFoundError:
        return ""


def _names(impl: str, name: str) -> tuple[str, ...]:
    """Return what a pattern may mean a class by: itself, its module, its package."""
    top = impl.partition(".")[0]
    return name, impl, top, f"{impl}.{name}", f"{top}.{name}"


def names_package(pattern: str, impl: str) -> bool:
    """Whether a pattern stands for all of a package."""
    names = _names(impl, "")[1:3]
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in names)


def _may_hold(impl: str, pattern: str) -> bool:
    if "." not in pattern:
        return True
    literal = pattern
    for sign in "*?[":
        literal = literal.partition(sign)[0]
    top = impl.partition(".")[0]
    return any(
        f"{path}.".startswith(literal) or literal.startswith(f"{path}.")
        for path in (impl, top)
    )


def _read(impl: str) -> Package:
    top = impl.partition(".")[0]
    if importlib.util.find_spec(top) is None:
        return Package(impl, install=DISTRIBUTIONS.get(top, top))
    package = Package(impl, version_of(impl))
    try:
        with quiet():
            module = importlib.import_module(impl)
            package.classes = _classes(module, top)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code runs here
        package.failure = told(error).splitlines()[0]
    return package


def _classes(module: ModuleType, top: str) -> dict[str, type[Optimizer]]:
    """Return the package's own classes: what it only passes on is listed elsewhere."""
    found: dict[str, Any] = {n: vars(module)[n] for n in optimizer_names(module)}
    return {n: cls for n, cls in found.items() if cls.__module__.split(".")[0] == top}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what packages say, while they are imported or tried, out of the output."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
