"""Check every optimizer node of a config tree at once, without importing torch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from omegaconf import DictConfig, OmegaConf

from optim_hydra.checking import read_config
from optim_hydra.errors import OptimHydraWarning, Problems, nearest
from optim_hydra.node import read_node
from optim_hydra.schema import RULES
from optim_hydra.tree import NODE_NAME, is_optimizer_node, mappings

__all__ = ["check_mounts", "validate"]


def validate(config: DictConfig) -> None:
    """Check all optimizer nodes of a composed config; `optim_hydra.main` does it.

    Values that are still open (`???`) are left to the time of building. Classes are
    not looked up, so torch and optional packages are not needed.

    Raises:
        ConfigError: With every problem of every node.

    Warns:
        OptimHydraWarning: A mapping looks like a misspelt optimizer node, which
            nobody would read.

    Example:
        >>> from omegaconf import OmegaConf
        >>> validate(OmegaConf.create({"actor": {"optim": {"lr": 1e-3}}}))

    """
    problems = Problems("")
    for at, node in mappings(config):
        name = at.rpartition(".")[2]
        if is_optimizer_node(node, at):
            own = Problems(at)
            read_config(read_node(node), own)
            problems.found += [p for p in own.found if not _is_unset(node, p.key, at)]
        elif (
            nearest(name, [NODE_NAME])
            and node
            and {str(k) for k in node} <= RULES.keys()
        ):
            text = f"nobody reads {at}{nearest(name, [NODE_NAME])}"
            warnings.warn(text, OptimHydraWarning, stacklevel=3)
    problems.raise_if_any()


def check_mounts(config: DictConfig, overrides: Iterable[str]) -> None:
    """Refuse `critic.optim=sgd`: it puts text where an optimizer node was.

    Raises:
        ConfigError: With the override that chooses the group.

    """
    problems = Problems("")
    for override in overrides:
        key, _, text = override.lstrip("+").partition("=")
        if "." not in key or "@" in key or key.rpartition(".")[2] != NODE_NAME:
            continue
        if isinstance(OmegaConf.select(config, key), str):
            what = f"{override} puts text where an optimizer node is due: write"
            what += f" optim@{key}={text}"
            problems.add(what, key)
    problems.raise_if_any()


def _is_unset(node: DictConfig, full_key: str, at: str) -> bool:
    key = full_key.removeprefix(f"{at}.")
    return key in node and OmegaConf.is_missing(node, key)
