"""Own the one table of renamed keys and apply it to mappings.

This is the first step of the flow: nothing is merged, typed or checked before
old names have become new ones. `override_text` applies the same table to what is
typed on a command line.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from omegaconf import DictConfig, open_dict, read_write

from optim_hydra.errors import MigrationError, Problem, RenamedKeyWarning, join_key
from optim_hydra.foreign_keys import FOREIGN_KEYS
from optim_hydra.tree import is_optimizer_node, mappings, raw_items
from optim_hydra.version import __version__

__all__ = ["RENAMED_KEYS", "RenamedKey", "migrate", "rename_keys", "written_as"]

T = TypeVar("T")


@dataclass(frozen=True)
class RenamedKey:
    """One rename: `old` is read as `new` until version `removed_in`."""

    old: str
    new: str
    since: str
    removed_in: str
    unset: tuple[Any, ...]
    """Values of the new key that count as "nobody set it"."""

    @property
    def is_removed(self) -> bool:
        """Whether this version no longer reads the old key."""
        return _version(__version__) >= _version(self.removed_in)

    def is_set(self, value: Any) -> bool:
        """Whether the new key was set: its default counts as not set."""
        return not any(same_value(value, unset) for unset in self.unset)


RENAMED_KEYS: dict[str, RenamedKey] = {
    key.old: key
    for key in (
        RenamedKey(
            "warmup_steps_ratio", "lr_warmup_steps_ratio", "0.1.0", "1.0.0", (None, 0.0)
        ),
        RenamedKey(
            "warmup_style", "lr_scheduler_type", "0.1.0", "1.0.0", (None, "constant")
        ),
        RenamedKey(
            "lr_scheduler", "lr_scheduler_type", "0.1.0", "1.0.0", (None, "constant")
        ),
        RenamedKey("grad_clip", "clip_grad", "0.1.0", "1.0.0", (None,)),
    )
}

# (new key, value) -> the key the user wrote, so that a later error can say it.
_written: dict[tuple[str, str], str] = {}


@dataclass
class _Shown:
    """The warnings shown under one list of filters: afresh in each catch_warnings."""

    filters: object
    texts: set[str]


_shown = _Shown(None, set())


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

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     migrate({"optim": {"grad_clip": 1.0}})
        {'optim': {'clip_grad': 1.0}}

    """
    result = copy.deepcopy(config)
    at = str(result._get_full_key(None)) if isinstance(result, DictConfig) else ""
    migrate_in_place(result, at)
    return result


def migrate_in_place(value: Any, at: str = "", where: str = "") -> None:
    """Rename the old keys of every optimizer node below `value`.

    Args:
        value: A DictConfig, ListConfig, dict or list; other values are left alone.
        at: Its full key.
        where: The file it stands in, for the messages.

    Raises:
        MigrationError: See `migrate`.

    """
    for key, mapping in list(mappings(value, at)):
        if is_optimizer_node(mapping, key):
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
            what = f"{key} was removed in {renamed.removed_in}: write {renamed.new}"
        elif value is not None:  # verl ships old keys as null placeholders
            others = {k: node[k] for k in _spellings(renamed) if k in node and k != key}
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
            node.pop(key)
        for key in result:
            if key not in items or result[key] != items[key]:
                node[key] = result[key]


def same_value(first: Any, second: Any) -> bool:
    """Compare two values as numbers where both are, else as they are."""
    try:
        return float(first) == float(second)
    except (TypeError, ValueError):
        return bool(first == second)


def conflict(old: str, new: str) -> str:
    """Describe two spellings of one key that disagree in one layer."""
    return f"{old} and {new} are one key with two values: keep one of them"


def warn_renamed(renamed: RenamedKey, key: str, value: Any, where: str) -> None:
    """Warn about one old key, once per place, on the first rank of a run only."""
    _written[renamed.new, str(value)] = key
    text = (
        f"{key} is now {renamed.new}"
        f" (since {renamed.since}; the old key is removed in {renamed.removed_in})"
    )
    # Python's own memory of shown warnings is wiped by every import that adds a
    # filter (torch does), and would repeat them for each job of a sweep.
    if _shown.filters is not warnings.filters:
        _shown.filters, _shown.texts = warnings.filters, set()
    place = f"{where}: {text}"
    if place not in _shown.texts and os.environ.get("RANK", "0") == "0":
        _shown.texts.add(place)
        warnings.warn_explicit(text, RenamedKeyWarning, where or "config", 0)


def written_as(key: str, value: Any) -> str | None:
    """Return the old key that the user wrote for this value of `key`, if any."""
    return _written.get((key, str(value)))


def _in(where: str) -> str:
    return f" (in {where})" if where else ""


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3])
