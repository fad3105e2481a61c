"""Check every optimizer node of a config tree at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from omegaconf import OmegaConf

from optim_hydra.checking import EXTRA, read_config
from optim_hydra.errors import OptimHydraWarning, Problems, nearest
from optim_hydra.field_checks import CHECKS
from optim_hydra.journal import JOURNAL
from optim_hydra.node import Node, read_node
from optim_hydra.planning import plan_node
from optim_hydra.references import hide_in
from optim_hydra.schema_groups import SCHEDULE_KEYS
from optim_hydra.tree import NODE_NAME, is_optimizer_node, mappings

__all__ = ["check_mounts", "unused_nodes", "validate"]


def validate(config: Any, *, classes: bool = False) -> None:
    """Check all optimizer nodes of a composed config.

    `optim_hydra.main` does it before a job's function runs. Values that are still
    open (`???`) are left to the time of building.

    Args:
        config: A DictConfig, or a plain dict or list.
        classes: Import each class too, and check its arguments. Without it neither
            torch nor an optional package is needed.

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
    for at, mapping in mappings(config):
        if is_optimizer_node(mapping, at):
            own, node = Problems(at), read_node(mapping)
            if classes:
                plan_node(node, own, allow_open=True)
            else:
                read_config(node, own, allow_open=True)
            problems.found += hide_in(own.found, node.references)
        else:
            _warn_of_orphan(mapping, at)
    problems.raise_if_any()


def unused_nodes(config: Any, overrides: Iterable[str]) -> list[str]:
    """Say which nodes the job that just ran did not use.

    Only if optimizers were built, all of them from nodes whose place is known; and,
    for a node that nothing was built from, only if the command line speaks of it.
    """
    if not JOURNAL.built or "" in JOURNAL.built:
        return []
    typed = [text.lstrip("+~").partition("=")[0] for text in overrides]
    said = []
    for at, mapping in mappings(config):
        if not is_optimizer_node(mapping, at):
            continue
        if at not in JOURNAL.built:
            if any(_speaks_of(key, at) for key in typed):
                said.append(f"no optimizer was built from {at}")
        elif at not in JOURNAL.scheduled and _has_schedule(read_node(mapping)):
            said.append(f"the schedule of {at} was not built: its lr is constant")
    return said


def _speaks_of(key: str, at: str) -> bool:
    group, _, package = key.partition("@")
    node = package or (group if group == NODE_NAME else "")
    return node == at or key.startswith(f"{at}.")


def _has_schedule(node: Node) -> bool:
    optim = read_config(node, Problems(node.at), allow_open=True)
    is_warm = (optim.lr_warmup_steps or 0) > 0 or optim.lr_warmup_steps_ratio > 0
    by_rule = any(key in rule for rule in optim.param_groups for key in SCHEDULE_KEYS)
    return optim.lr_scheduler_type != "constant" or is_warm or by_rule


def _warn_of_orphan(mapping: Any, at: str) -> None:
    if EXTRA in at.split("."):
        return  # an argument, such as the class that Lookahead wraps
    name = at.rpartition(".")[2]
    near = nearest(name, [NODE_NAME]) if name != NODE_NAME else ""
    if near and mapping and {str(key) for key in mapping} <= CHECKS.keys():
        warnings.warn(f"nobody reads {at}{near}", OptimHydraWarning, stacklevel=4)


def check_mounts(config: Any, overrides: Iterable[str]) -> None:
    """Refuse `critic.optim=sgd`: it puts text where an optimizer node was.

    Raises:
        ConfigError: With the override that chooses the group.

    """
    problems = Problems("")
    for override in overrides:
        key, _, text = override.removeprefix("++").partition("=")
        if key.startswith("+"):
            continue  # a new key, where no node was
        if "." not in key or "@" in key or key.rpartition(".")[2] != NODE_NAME:
            continue
        if isinstance(
            OmegaConf.select(config, key, throw_on_resolution_failure=False), str
        ):
            what = f"{override} puts text where an optimizer node is due: write"
            what += f" optim@{key}={text}"
            problems.add(what, key)
    problems.raise_if_any()
