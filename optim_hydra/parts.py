"""Own `build_optimizers`: one optimizer for each of several named modules."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.optim import Optimizer

from optim_hydra.builder import promises
from optim_hydra.container import OptimizersContainer
from optim_hydra.errors import ConfigError, Problems, WrongObjectError, nearest
from optim_hydra.lr_scheduler import (
    check_rates,
    mark_advanced,
    read_schedule,
    schedule_node,
)
from optim_hydra.node import Node, read_node
from optim_hydra.parameters import Parameters, read_parameters
from optim_hydra.prepared import Prepared, prepare
from optim_hydra.references import hide_in
from optim_hydra.schedule_plan import plan_schedules
from optim_hydra.tree import NODE_NAME
from optim_hydra.unmatched import listed

__all__ = ["build_optimizers"]


def build_optimizers(
    modules: Mapping[str, nn.Module],
    config: Any,
    *,
    total_training_steps: int | None = None,
    provides: str | Iterable[str] = (),
) -> OptimizersContainer[Optimizer]:
    """Build one optimizer for each named module, and step them together.

    One step of the container is one update of every module, after which each
    schedule goes on by one. All nodes are checked before the first class is called,
    and what is wrong with any of them comes in one error.

    Args:
        modules: Name -> module, such as `{"actor": actor, "critic": critic}`. One that
            is not to be trained is left out.
        config: The tree that has a node for each name, `config.actor.optim`; also a
            mapping of the nodes themselves, `{"actor": node}`.
        total_training_steps: Updates in all, for nodes that leave it at -1.
        provides: As in `build_optimizer`.

    Returns:
        A container; `container["critic"]` is one of the optimizers,
        `container.lr_schedulers["critic"]` its schedule.

    Raises:
        ConfigError: Nodes, classes, parameters or schedules don't fit together.
        WrongObjectError: An argument is of the wrong kind.

    Example:
        >>> from omegaconf import OmegaConf
        >>> modules = {"actor": nn.Linear(4, 2), "critic": nn.Linear(4, 1)}
        >>> optim = {"optim": {"lr": 1e-3}}
        >>> config = OmegaConf.create({"actor": optim, "critic": optim})
        >>> container = build_optimizers(modules, config)
        >>> container.names
        ['actor', 'critic']

    """
    named = isinstance(modules, Mapping) and all(isinstance(n, str) for n in modules)
    if not named or not modules:
        msg = "the first argument holds no named modules: give {'actor': actor, ...}"
        raise WrongObjectError(msg)
    problems = Problems("")
    nodes = _nodes(modules, config, problems)
    read = {name: _read(name, modules[name]) for name in nodes}
    _check_shared(read, problems)
    prepared: dict[str, Prepared] = {}
    for name, node in nodes.items():
        own = Problems(node.at)
        ready = prepare(read[name], node, promises(provides), own)
        if not own.found and not node.target:
            with contextlib.suppress(ConfigError):  # `own` has its problems
                plan_schedules(*read_schedule(node, total_training_steps, own), own)
        problems.found += hide_in(own.found, node.references)
        if ready is not None:
            prepared[name] = ready
    problems.raise_if_any()
    built = {name: ready.construct() for name, ready in prepared.items()}
    for name, optimizer in built.items():
        if not nodes[name].target:
            check_rates(optimizer, Problems(nodes[name].at))
    schedulers = {}
    for name, optimizer in built.items():
        prepared[name].finish(optimizer)
        if not nodes[name].target:
            schedulers[name] = schedule_node(
                optimizer, nodes[name], total_training_steps
            )
        mark_advanced(optimizer, name)
    return OptimizersContainer.of(built, lr_schedulers=schedulers, prefixed=True)


def _nodes(names: Iterable[str], config: Any, problems: Problems) -> dict[str, Node]:
    """Find the node of each module: `config.actor.optim`, or `config.actor` itself."""
    if _is_instance(config):
        config = OmegaConf.structured(config)
    if not _is_tree(config):
        msg = (
            f"the config is of type {type(config).__name__}: give the tree that has a"
            " node for each module"
        )
        raise WrongObjectError(msg)
    nodes = {}
    for name in names:
        found: Any = config
        at = name
        for part in name.split("."):
            found = found.get(part) if _is_tree(found) else None
        if _is_tree(found) and NODE_NAME in found:
            found = found[NODE_NAME]
            at = f"{name}.{NODE_NAME}"
        if found is None:
            near = nearest(name, map(str, config))
            there = f" (there are {', '.join(map(str, config))})"
            problems.add(f"the config has no node for this module{near}{there}", name)
            continue
        node = read_node(found)
        nodes[name] = node if node.at else dataclasses.replace(node, at=at)
    return nodes


def _read(name: str, module: nn.Module) -> Parameters:
    try:
        return read_parameters(module)
    except WrongObjectError as error:
        msg = f"{name}: {error}"
        raise WrongObjectError(msg) from error


def _is_instance(value: Any) -> bool:
    """Whether it is an instance of a dataclass; verl's are mappings too."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _is_tree(value: Any) -> bool:
    return isinstance(value, (Mapping, DictConfig)) and not _is_instance(value)


def _check_shared(read: Mapping[str, Parameters], problems: Problems) -> None:
    """Note parameters that two of the optimizers would update."""
    owner: dict[int, str] = {}
    for name, parameters in read.items():
        shared: dict[str, list[str]] = {}
        for local, parameter in parameters.named():
            first = owner.setdefault(id(parameter), name)
            if first != name:
                shared.setdefault(first, []).append(local)
        for first, locals_ in shared.items():
            what = (
                f"{listed(locals_)} belongs to {first} too, and both optimizers would"
                " update it: build one for both modules,"
                f" build_optimizer({{{first!r}: ..., {name!r}: ...}}, node)"
            )
            problems.add(what, name)
