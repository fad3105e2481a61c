"""Walk a config tree and tell which of its mappings are optimizer nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import omegaconf
from omegaconf import DictConfig, ListConfig, OmegaConf

from optim_hydra.errors import join_key

__all__ = [
    "BUILD_TARGET",
    "NODE_NAME",
    "TARGET_REFUSED",
    "has_target",
    "is_optimizer_node",
    "is_our_target",
    "mappings",
    "raw_items",
]

NODE_NAME = "optim"
BUILD_TARGET = "optim_hydra.build"
TARGET_REFUSED = "_target_ is refused here: arguments are plain values"
# OmegaConf 2.4 has it.
_TUPLE: Any = getattr(omegaconf, "TupleConfig", ())
_SCHEMA = ("optim_hydra.schema", "OptimConfig")


def mappings(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every mapping below `value`, itself first, with its full key.

    Lists are entered; references and missing values are not followed.
    """
    children: list[tuple[str, Any]]
    if _is_special(value):
        return
    if isinstance(value, (DictConfig, dict)):
        yield at, value
        children = [(join_key(at, str(key)), key) for key in value]
    elif isinstance(value, (ListConfig, list)):
        children = [(join_key(at, f"[{index}]"), index) for index in range(len(value))]
    else:
        return
    for child_at, key in children:
        if not _is_reference(value, key):
            yield from mappings(value[key], child_at)


def is_optimizer_node(mapping: Any, at: str) -> bool:
    """Whether a mapping is one of our nodes: by type, `_target_` or name.

    A mapping called `optim` that names another `_target_` is somebody else's.
    """
    if isinstance(mapping, DictConfig):
        node_type = OmegaConf.get_type(mapping)
        bases = (node_type or object).__mro__
        if any((base.__module__, base.__name__) == _SCHEMA for base in bases):
            return True
    target = raw_items(mapping).get("_target_")
    if isinstance(target, str) and target:
        return is_our_target(target)
    return at.rpartition(".")[2] == NODE_NAME


def is_our_target(target: str) -> bool:
    """Whether a `_target_` is the library's own, resolved or not."""
    return target == BUILD_TARGET or target.startswith("${optim_target:")


def has_target(value: Any) -> bool:
    """Whether plain data has a `_target_` in it, at any depth."""
    if isinstance(value, Mapping):
        return "_target_" in value or any(map(has_target, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_target, value))


def raw_items(node: Any) -> dict[str, Any]:
    """Return a mapping's items with references left as text."""
    if isinstance(node, DictConfig):
        node = _raw(node)
    return {str(key): value for key, value in node.items()}


def _raw(node: Any) -> Any:
    """Do what `OmegaConf.to_container(node, resolve=False)` does, in a tenth of it."""
    value = node._value()
    if isinstance(value, dict):
        return {key: _raw(child) for key, child in value.items()}
    if isinstance(value, list):
        items = [_raw(child) for child in value]
        return tuple(items) if isinstance(node, _TUPLE) else items
    return value


def _is_special(value: Any) -> bool:
    return isinstance(value, (DictConfig, ListConfig)) and (
        value._is_none() or value._is_missing() or value._is_interpolation()
    )


def _is_reference(container: Any, key: Any) -> bool:
    return isinstance(container, (DictConfig, ListConfig)) and (
        OmegaConf.is_interpolation(container, key)
        or OmegaConf.is_missing(container, key)
    )
