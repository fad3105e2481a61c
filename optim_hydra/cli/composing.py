"""Compose an app's config from its folder, as the app does, and find its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from optim_hydra.app import asked_version, compose
from optim_hydra.errors import (
    ConfigError,
    OptimHydraError,
    Problem,
    WrongObjectError,
    nearest,
)
from optim_hydra.foreign_keys import FOREIGN_KEYS
from optim_hydra.node import Node, read_node
from optim_hydra.override_text import migrate_overrides
from optim_hydra.tree import NODE_NAME, is_optimizer_node, mappings, raw_items

__all__ = ["Found", "compose_file", "find_nodes"]


_SUFFIXES = (".yaml", ".yml")
# What Hydra raises at files and overrides that it can't read, not all of it its own.
_BROKEN = (
    HydraException,
    OmegaConfBaseException,
    YAMLError,
    ValueError,
    OSError,
    RecursionError,
)


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
        overrides: As on the app's command line; old keys work, and those of another
            library for its own nodes.

    Raises:
        ConfigError: Hydra can't compose it.
        WrongObjectError: There is no such file.

    """
    if config.suffix and config.is_file() and config.suffix not in _SUFFIXES:
        msg = f"{config} is no YAML file: give the app's primary config"
        raise WrongObjectError(msg)
    file = config if config.suffix in _SUFFIXES else Path(f"{config}.yaml")
    if not file.is_file():
        folder = config if config.is_dir() else file.parent
        there = [str(path) for path in sorted(folder.glob("*.yaml")) if path.is_file()]
        near = nearest(str(file), there)
        if there and not near:
            near = f": give one of {', '.join(there)}"
        msg = f"there is no config {file}{near}"
        raise WrongObjectError(msg)
    if file.suffix != _SUFFIXES[0]:
        msg = f"Hydra reads no {file.suffix}: rename {file} to {file.stem}.yaml"
        raise WrongObjectError(msg)
    if file.resolve().parent.name == NODE_NAME:
        choice = f"{NODE_NAME}={file.stem}"
        msg = f"{file} is a choice of the group {NODE_NAME}: give the primary config"
        msg += f" of an app and the override {choice}, or {NODE_NAME}@MODULE.{choice}"
        raise WrongObjectError(msg)
    try:
        with hydra.initialize_config_dir(str(file.parent.resolve()), **asked_version()):
            return _compose(file.stem, list(overrides))
    except OptimHydraError:
        raise
    except _BROKEN as error:
        said = f"{error}{_causes(error)}"
        if "RecursionError" in said or isinstance(error, RecursionError):
            said = "it is too deep, or goes round in a circle"
        what = f"{file} can't be composed: {said}"
        raise ConfigError([Problem(what, "", ConfigError)]) from error


def _compose(name: str, overrides: list[str]) -> DictConfig:
    """Compose with keys of other libraries, too, where their nodes are meant.

    As in their files, such a key is told in ours; a node of ours refuses it.
    """
    foreign = {text: at for text in overrides if (at := _foreign_node(text))}
    if foreign:
        others = [text for text in overrides if text not in foreign]
        config = compose(name, others)
        theirs = [text for text, at in foreign.items() if _is_theirs(config, at)]
        if len(theirs) == len(foreign):
            return hydra.compose(name, [*migrate_overrides(others), *theirs])
        overrides = [text for text in overrides if text not in theirs]
    return compose(name, overrides)


def _foreign_node(override: str) -> str:
    """Return the full key of the node in which a key of another library is set."""
    node, _, last = override.lstrip("+").partition("=")[0].rpartition(".")
    is_foreign = last in FOREIGN_KEYS and node.rpartition(".")[2] == NODE_NAME
    return node if is_foreign else ""


def _is_theirs(config: DictConfig, key: str) -> bool:
    node = OmegaConf.select(config, key)
    return isinstance(node, DictConfig) and not is_optimizer_node(node, key)


def _causes(error: BaseException) -> str:
    """Say what an error was raised from, which names the key."""
    cause = error.__cause__
    if cause is None or str(cause) in str(error):
        return ""
    lines = map(str.strip, str(cause).splitlines())
    return f": {', '.join(line for line in lines if line)}"


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
