"""Compose an app's config from its folder, as the app does, and find its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from optim_hydra.app import compose
from optim_hydra.errors import ConfigError, Problem, WrongObjectError, nearest
from optim_hydra.node import Node, read_node
from optim_hydra.tree import NODE_NAME, is_optimizer_node, mappings, raw_items

__all__ = ["Found", "compose_file", "find_nodes"]


@dataclass(frozen=True)
class Found:
    """The optimizer nodes of a config, by their full keys."""

    ours: dict[str, Node] = field(default_factory=dict)
    """Nodes that `build_optimizer` takes."""
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Items of mappings called `optim` whose `_target_` is somebody else's."""


def compose_file(config: Path, overrides: Sequence[str]) -> DictConfig:
    """Compose a primary config from the folder that it is in.

    Args:
        config: Path of the file, with or without `.yaml`.
        overrides: As on the app's command line; old keys work.

    Raises:
        ConfigError: Hydra can't compose it.
        WrongObjectError: There is no such file.

    """
    file = config if config.suffix in (".yaml", ".yml") else Path(f"{config}.yaml")
    if not file.is_file():
        folder = config if config.is_dir() else file.parent
        there = [str(path) for path in sorted(folder.glob("*.yaml"))]
        near = nearest(str(file), there)
        if there and not near:
            near = f": give one of {', '.join(there)}"
        msg = f"there is no config {file}{near}"
        raise WrongObjectError(msg)
    try:
        with hydra.initialize_config_dir(str(file.parent.resolve()), version_base=None):
            return compose(file.stem, list(overrides))
    except ConfigError:
        raise
    except (HydraException, OmegaConfBaseException) as error:
        what = f"{file} can't be composed: {error}"
        raise ConfigError([Problem(what, "", ConfigError)]) from error


def find_nodes(config: DictConfig) -> Found:
    """Find the nodes of a composed config, ours and those of others.

    Raises:
        ConfigError: There is none.

    """
    found = Found()
    for at, mapping in mappings(config):
        if is_optimizer_node(mapping, at):
            found.ours[at] = read_node(mapping)
        elif at.rpartition(".")[2] == NODE_NAME:
            items = raw_items(mapping)
            if _is_plain(items):
                found.ours[at] = read_node(mapping)
            else:
                found.others[at] = items
    if not (found.ours or found.others):
        keys = ", ".join(map(str, config)) or "nothing"
        what = f"no optimizer node among {keys}: choose one, +optim@MODULE.optim=adamw"
        raise ConfigError([Problem(what, "", ConfigError)])
    return found


def _is_plain(items: dict[str, Any]) -> bool:
    """Whether a `_target_` names an optimizer class, as in a plain Hydra node."""
    name = str(items.get("_target_")).rpartition(".")[2]
    return "optimizer" not in items and "config" not in name.lower()
