"""Make the library known to Hydra: its plugins, its schema, its resolvers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.plugins.search_path_plugin import SearchPathPlugin

from optim_hydra.store import register_resolvers, register_schema

__all__ = ["announce", "register"]

NAMESPACE = "hydra_plugins"


def announce() -> None:
    """Do what has to be done when the package is imported.

    Hydra finds the plugins when it starts, and these register the schema. Where it has
    started, all is registered at once.
    """
    register_resolvers()
    # Hydra scans this namespace whenever it makes its Plugins object, also again
    # after a launcher or a test fixture has replaced it.
    here = str(Path(__file__).parent / NAMESPACE)
    namespace = _plugin_namespace()
    if here not in namespace.__path__:
        namespace.__path__ = [*namespace.__path__, here]
    if Plugins in Singleton._instances:
        register_schema()
        _register_plugins()


def register() -> None:
    """Register everything that is not registered; doing it twice is harmless.

    Hydra's test fixtures and launchers put back an earlier state of its singletons, so
    `main` and `compose` do it again.
    """
    announce()
    register_schema()


def _register_plugins() -> None:
    from optim_hydra.source import (  # noqa: PLC0415 - Hydra itself imports them
        MigratingSearchPath,
        MigratingSource,
    )

    plugins = Plugins.instance()
    if MigratingSearchPath not in plugins.discover(SearchPathPlugin):
        plugins.register(MigratingSource)
        plugins.register(MigratingSearchPath)
        module = importlib.import_module(f"{NAMESPACE}.optim_hydra_plugins")
        plugins.register(module.LocalLauncher)


def _plugin_namespace() -> ModuleType:
    try:
        return importlib.import_module(NAMESPACE)
    except ModuleNotFoundError:  # no other plugin is installed
        module = ModuleType(NAMESPACE)
        module.__path__ = []
        sys.modules[NAMESPACE] = module
        return module
