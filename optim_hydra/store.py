"""Register the schema and the resolvers with Hydra and OmegaConf."""

from __future__ import annotations

from typing import Any

import omegaconf
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

__all__ = ["optim_full_key", "optim_target", "register_resolvers", "register_schema"]

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
    from optim_hydra.tree import BUILD_TARGET  # noqa: PLC0415 - not at import

    recursive = _parent_._get_node("_recursive_")
    if recursive is None or OmegaConf.is_config(recursive) or recursive._value():
        _refuse_targets(_parent_)
    return BUILD_TARGET


def _refuse_targets(node: DictConfig) -> None:
    from optim_hydra.errors import Problems  # noqa: PLC0415 - as above
    from optim_hydra.node import plain  # noqa: PLC0415 - as above
    from optim_hydra.tree import TARGET_REFUSED, has_target  # noqa: PLC0415 - as above

    problems = Problems(str(node._get_full_key(None) or ""))
    for key in [str(key) for key in node if key != "_target_"]:
        if not OmegaConf.is_missing(node, key) and has_target(plain(node[key])):
            problems.add(TARGET_REFUSED, key)
    problems.raise_if_any()


def optim_full_key(*, _parent_: DictConfig) -> str:
    """Resolve `${optim_full_key:}` to the full key of the node that it stands in."""
    return str(_parent_._get_full_key(None) or "")


def register_resolvers() -> None:
    """Register the two resolvers that nodes have in them."""
    for resolver in (optim_target, optim_full_key):
        _REGISTER(resolver.__name__, resolver, replace=True)


def register_schema() -> None:
    """Register `optim: base_optim`, and the launcher's node, where they are missing."""
    from optim_hydra.schema import OptimConfig  # noqa: PLC0415 - once Hydra composes

    store = ConfigStore.instance()
    if "optim" not in store.repo or "base_optim.yaml" not in store.repo["optim"]:
        store.store(group="optim", name="base_optim", node=OptimConfig)
        store.store(group="hydra/launcher", name="optim_local", node=dict(_LOCAL))
