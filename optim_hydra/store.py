"""Register the schema, the resolver and the search path with Hydra."""

from __future__ import annotations

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf

from optim_hydra.schema import ActorCriticConfig, OptimConfig
from optim_hydra.source import MigratingSearchPath, MigratingSource

__all__ = ["optim_target", "register"]


def optim_target(impl: str, name: str) -> str:  # noqa: ARG001 - every class has one builder
    """Resolve `${optim_target:impl,name}` to the dotted path of the class's builder.

    Text only: nothing is imported, so a config prints, saves and sweeps as text.
    """
    return "optim_hydra.build"


def optim_full_key(*, _parent_: DictConfig) -> str:
    """Resolve `${optim_full_key:}` to the full key of the node that it stands in."""
    return str(_parent_._get_full_key(None) or "")


def register() -> None:
    """Register everything; doing it twice is harmless."""
    store = ConfigStore.instance()
    store.store(
        group="optim", name="base_optim", node=OptimConfig, provider="optim_hydra"
    )
    store.store(
        name="base_actor_critic", node=ActorCriticConfig, provider="optim_hydra"
    )
    for resolver in (optim_target, optim_full_key):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)
    plugins = Plugins.instance()
    if MigratingSearchPath not in plugins.discover(SearchPathPlugin):
        plugins.register(MigratingSource)
        plugins.register(MigratingSearchPath)
