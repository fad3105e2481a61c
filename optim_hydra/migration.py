"""Apply the table of renamed keys to mappings.

This is the first step of the flow: nothing is merged, typed or checked before
old names have become new ones. `override_text` applies the same table to what is
typed on a command line.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from omegaconf import DictConfig, ListConfig, open_dict, read_write

from optim_hydra.errors import MigrationError, Problem, WrongObjectError, join_key
from optim_hydra.foreign_keys import FOREIGN_KEYS
from optim_hydra.rename_notices import forget_written, warn_renamed
from optim_hydra.renamed_keys import RENAMED_KEYS, RenamedKey, conflict, same_value
from optim_hydra.tree import is_optimizer_node, mappings, raw_items

__all__ = ["migrate", "migrate_in_place", "rename_keys"]

T = TypeVar("T")


def migrate(config: T) -> T:
    """Return a copy of a config tree in which renamed keys have their new names.

    Only mappings called `optim`, typed as `OptimConfig` or marked by our
    `_target_` are touched, at any depth, also in lists. Use it on a saved config;
    a second call changes nothing and does not warn.

    Args:
        config: A DictConfig, ListConfig, dict or list.

    Raises:
        MigrationError: An old key disagrees with its new one, was removed, or
            belongs to another library and means something else.
        WrongObjectError: It is no config, such as the name of a file.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     migrate({"optim": {"grad_clip": 1.0}})
        {'optim': {'clip_grad': 1.0}}

    """
    if not isinstance(config, (DictConfig, ListConfig, dict, list)):
        msg = f"migrate takes a config or a mapping, not a {type(config).__name__}:"
        msg += " load a file first, OmegaConf.load(path)"
        raise WrongObjectError(msg)
    forget_written("")
    result = copy.deepcopy(config)
    at = str(result._get_full_key(None)) if isinstance(result, DictConfig) else ""
    migrate_in_place(result, at)
    return result


def migrate_in_place(
    value: Any, at: str = "", where: str = "", mounts: Collection[str] = ()
) -> None:
    """Rename the old keys of every optimizer node below `value`.

    Args:
        value: A DictConfig, ListConfig, dict or list; other values are left alone.
        at: Its full key.
        where: The file it stands in, for the messages.
        mounts: Full keys that hold an optimizer node whatever their name.

    Raises:
        MigrationError: See `migrate`.

    """
    for key, mapping in list(mappings(value, at)):
        if key in mounts or is_optimizer_node(mapping, key):
            _apply(mapping, key, where)


def rename_keys(
    node: Mapping[str, Any], at: str, where: str = ""
) -> tuple[dict[str, Any], list[Problem]]:
    """Return a copy of one node's items under their new names, and what is wrong.

    Args:
        node: Plain items of an optimizer node.
        at: Its full key, such as `actor.optim`.
        where: The file it stands in, for the messages.

    """
    if RENAMED_KEYS.keys().isdisjoint(node) and FOREIGN_KEYS.keys().isdisjoint(node):
        return dict(node), []
    result: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in node.items():
        what, error_key = "", join_key(at, key)
        renamed = RENAMED_KEYS.get(key)
        if key in FOREIGN_KEYS:
            what = FOREIGN_KEYS[key].advice(node)
        elif renamed is None:
            result.setdefault(key, value)
        elif renamed.is_removed:
            what = renamed.removal
        else:
            others = {k: node[k] for k in _spellings(renamed) if k in node and k != key}
            if value is None and (others or not renamed.null_is_a_value):
                continue  # verl ships old keys as null placeholders
            rivals = {k: v for k, v in others.items() if renamed.is_set(v)}
            rival = next(
                (k for k, v in rivals.items() if not same_value(v, value)), None
            )
            if rival:
                what = conflict(f"{key}: {value}", f"{rival}: {rivals[rival]}")
            result[renamed.new] = value
            if not what:
                warn_renamed(renamed, error_key, value, where)
        if what:
            problems.append(Problem(what + _in(where), error_key, MigrationError))
    return result, problems


def _spellings(renamed: RenamedKey) -> list[str]:
    return [
        renamed.new,
        *(k.old for k in RENAMED_KEYS.values() if k.new == renamed.new),
    ]


def _apply(node: Any, at: str, where: str) -> None:
    items = raw_items(node)
    if not any(key in RENAMED_KEYS or key in FOREIGN_KEYS for key in items):
        return
    result, problems = rename_keys(items, at, where)
    if problems:
        raise MigrationError(problems)
    if isinstance(node, dict):
        node.clear()
        node.update(result)
        return
    with read_write(node), open_dict(node):
        for key in items.keys() - result.keys():
            del node[key]  # pop would resolve a reference, which may point elsewhere
        for key in result:
            if key not in items or result[key] != items[key]:
                node[key] = result[key]


def _in(where: str) -> str:
    return f" (in {where})" if where else ""
