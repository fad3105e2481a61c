"""Read a node in any form that people have into plain values and its full key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import (
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from optim_hydra.errors import ConfigError, Problem, WrongObjectError, join_key
from optim_hydra.foreign_keys import VERL_CLASSES
from optim_hydra.references import references_of
from optim_hydra.tree import is_our_target, raw_items

__all__ = ["NODE_KEYS", "Node", "plain", "read_as", "read_node", "read_parts"]

NODE_KEYS = ("_recursive_", "_convert_", "_partial_", "_full_key_")


@dataclasses.dataclass(frozen=True)
class Node:
    """Plain items of one optimizer node, and where it stands in the config."""

    items: dict[str, Any]
    at: str
    unresolved: tuple[Problem, ...] = ()
    """One for each item whose reference leads nowhere; it is not in `items`."""
    references: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Text that a resolver gave -> its reference, which messages show instead."""

    @property
    def target(self) -> str:
        """The dotted path of a plain Hydra node; empty for a node of ours."""
        target = str(self.items.get("_target_") or "")
        return "" if is_our_target(target) or "optimizer" in self.items else target

    def arguments(self) -> dict[str, Any]:
        """Return the items without the keys that are about the node itself."""
        return {
            key: value
            for key, value in self.items.items()
            if key != "_target_" and key not in NODE_KEYS
        }


def read_node(config: object) -> Node:
    """Read a DictConfig, dataclass instance or mapping.

    One of verl's config classes, or a node whose `_target_` names one, is converted.

    Raises:
        ConfigError: The node is empty, text stands where a node is due, or an item of
            verl's has no equal.
        WrongObjectError: The object is no config at all.

    """
    node = _read(config)
    target = _verl_class(config, node)
    return _converted(node, "verl", target) if target else node


def read_as(config: object, source: str) -> Node:
    """Read a whole node of another library as one of ours.

    Args:
        config: As for `read_node`.
        source: One of `dialects.SOURCES`.

    Raises:
        ConfigError: Items have no equal; see also `read_node`.
        WrongObjectError: The object is no config at all.

    """
    node = _read(config)
    return _converted(node, source, _verl_class(config, node))


def _verl_class(config: object, node: Node) -> str:
    """Return the name of verl's class of which a config is, or nothing."""
    target = str(node.items.get("_target_") or "").rpartition(".")[2]
    names = [base.__name__ for base in type(config).__mro__]
    return next((name for name in (*names, target) if name in VERL_CLASSES), "")


def _converted(node: Node, source: str, target: str) -> Node:
    # Most programs have no such node, and need not load the rules.
    from optim_hydra.foreign_nodes import convert_whole  # noqa: PLC0415

    items = convert_whole(node.items, source, node.at, target)
    return dataclasses.replace(node, items=items)


def _read(config: object) -> Node:
    if isinstance(config, DictConfig):
        return _read_dict_config(config)
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        names = [f.name for f in dataclasses.fields(config)]
        return read_parts({name: getattr(config, name) for name in names})
    if isinstance(config, Mapping):
        return read_parts(config)
    if isinstance(config, str):
        what = (
            f"the text {config!r} stands where an optimizer node is due: a group is"
            f" chosen by optim@MODULE.optim={config} on the command line"
        )
        raise ConfigError([Problem(what, "", ConfigError)])
    msg = (
        f"the config is of type {type(config).__name__}: give a node such as"
        " cfg.actor.optim, an OptimConfig or a dict, after the module:"
        " build_optimizer(module, config)"
    )
    raise WrongObjectError(msg)


def _read_dict_config(config: DictConfig) -> Node:
    at = str(config._get_full_key(None) or "")
    if config._is_none() or config._is_missing():
        what = "the node is empty: choose a group, optim@MODULE.optim=adamw"
        raise ConfigError([Problem(what, at, ConfigError)])
    items: dict[str, Any] = {}
    unresolved: list[Problem] = []
    references: dict[str, str] = {}
    for key, raw in raw_items(config).items():
        ours = key == "_full_key_" or (key == "_target_" and is_our_target(str(raw)))
        if ours or not _refers(raw):
            items[key] = raw  # known without asking a resolver
            continue
        try:
            items[key] = plain(config[key])
            references |= references_of(raw, items[key], config._get_root())
        except (MissingMandatoryValue, InterpolationToMissingValueError):
            items[key] = "???"
        except OmegaConfBaseException as error:
            what = f"{raw} can't be resolved: {error.msg or error}".splitlines()[0]
            problem = Problem(what, join_key(at, key), ConfigError, error)
            unresolved.append(problem)
    return Node(items, at, tuple(unresolved), references)


def _refers(raw: Any) -> bool:
    """Whether a raw value has a reference in it, at any depth."""
    if isinstance(raw, dict):
        return any(map(_refers, raw.values()))
    if isinstance(raw, list):
        return any(map(_refers, raw))
    return isinstance(raw, str) and "${" in raw


def read_parts(parts: Mapping[str, Any]) -> Node:
    """Read a node taken apart, as `hydra.utils.instantiate` passes it."""
    items = {str(key): plain(value) for key, value in parts.items()}
    at = str(items.get("_full_key_") or "")
    return Node(items, "" if "${" in at else at)


def plain(value: Any) -> Any:
    """Return a copy with config objects and numpy scalars turned into plain Python."""
    if isinstance(value, (DictConfig, ListConfig)):
        return OmegaConf.to_container(value, resolve=True)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = list(map(plain, value))
        if type(value) is list:
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    return value
