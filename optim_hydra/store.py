"""Register the schema, the resolvers and the search path with Hydra."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import omegaconf
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from optim_hydra.errors import Problems
from optim_hydra.node import plain
from optim_hydra.schema import OptimConfig
from optim_hydra.source import MigratingSearchPath, MigratingSource
from optim_hydra.tree import BUILD_TARGET, TARGET_REFUSED, has_target

__all__ = ["optim_full_key", "optim_target", "register"]

NAMESPACE = "hydra_plugins"
# OmegaConf 2.4 has renamed it; `register_resolver` of 2.3 is an older one.
_IS_OLD = omegaconf.__version__.startswith("2.3")
_REGISTER: Any = getattr(
    OmegaConf, "register_new_resolver" if _IS_OLD else "register_resolver"
)
_LOCAL = {"_target_": "hydra_plugins.optim_hydra_plugins.LocalLauncher", "n_jobs": None}


def optim_target(
    impl: str,  # noqa: ARG001 - every class has the one builder
    name: str,  # noqa: ARG001 - as impl
    *,
    _parent_: DictConfig,
) -> str:
    """Resolve `${optim_target:impl,name}` to the dotted path of the class's builder.

    Text only: nothing is imported, so a config prints, saves and sweeps as text.

    Raises:
        ConfigError: Hydra would call a `_target_` below the node before the library
            could refuse it.

    """
    recursive = _parent_._get_node("_recursive_")
    if recursive is None or OmegaConf.is_config(recursive) or recursive._value():
        problems = Problems(str(_parent_._get_full_key(None) or ""))
        for key in [str(key) for key in _parent_ if key != "_target_"]:
            if not OmegaConf.is_missing(_parent_, key) and has_target(
                plain(_parent_[key])
            ):
                problems.add(TARGET_REFUSED, key)
        problems.raise_if_any()
    return BUILD_TARGET


def optim_full_key(*, _parent_: DictConfig) -> str:
    """Resolve `${optim_full_key:}` to the full key of the node that it stands in."""
    return str(_parent_._get_full_key(None) or "")


def register() -> None:
    """Register everything that is not registered; doing it twice is harmless.

    Importing the package does it. Hydra's test fixtures and launchers put back an
    earlier state of its singletons, so `main` and `compose` do it again.
    """
    store = ConfigStore.instance()
    if "optim" not in store.repo or "base_optim.yaml" not in store.repo["optim"]:
        store.store(group="optim", name="base_optim", node=OptimConfig)
        store.store(group="hydra/launcher", name="optim_local", node=dict(_LOCAL))
    for resolver in (optim_target, optim_full_key):
        _REGISTER(resolver.__name__, resolver, replace=True)
    _register_plugins()


def _register_plugins() -> None:
    # Hydra scans this namespace whenever it makes its Plugins object, also again
    # after a launcher or a test fixture has replaced it.
    here = str(Path(__file__).parent / NAMESPACE)
    namespace = _plugin_namespace()
    if here not in namespace.__path__:
        namespace.__path__ = [*namespace.__path__, here]
    if Plugins not in Singleton._instances:
        return
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
