"""Tell where a config file, or a group in its defaults list, is mounted."""

from __future__ import annotations

from collections.abc import Iterable

from optim_hydra.errors import join_key
from optim_hydra.tree import NODE_NAME

__all__ = ["mounts", "place_of"]


def place_of(config_path: str, package: str) -> str:
    """Return the full key of a file's top level, as far as the file alone tells."""
    group = config_path.rpartition("/")[0].replace("/", ".")
    if group.rpartition(".")[2] == NODE_NAME or package in ("", "_group_"):
        return package if package.rpartition(".")[2] == NODE_NAME else group
    return "" if package == "_global_" else package


def mounts(entries: Iterable[str], at: str) -> set[str]:
    """Return the keys at which a defaults list mounts the group `optim`.

    Args:
        entries: The keys of its entries, such as `optim@actor.optim`.
        at: Full key of the file's top level.

    """
    mounted = [entry.partition("@") for entry in entries]
    return {
        package.removeprefix("_global_.")
        if package.startswith("_global_.")
        else join_key(at, package)
        for group, _, package in mounted
        if package and group.rpartition(" ")[2].rpartition("/")[2] == NODE_NAME
    }
