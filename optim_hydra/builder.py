"""Own `build_optimizer`: one node and one module become one torch optimizer."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optim_hydra.arguments import (
    Planned,
    given_by_config,
    given_by_plain_node,
    plan_arguments,
)
from optim_hydra.checking import read_config
from optim_hydra.errors import (
    ConfigError,
    OptimHydraWarning,
    Problem,
    Problems,
    join_key,
    nearest,
)
from optim_hydra.journal import JOURNAL
from optim_hydra.needs import PROTOCOLS, need_of
from optim_hydra.node import Node, read_node
from optim_hydra.targets import Target, load_class, resolve_target

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["build_from_node", "build_optimizer", "plan_node"]

log = logging.getLogger(__name__)


def build_optimizer(
    parameters: nn.Module | Iterable[Tensor | tuple[str, Tensor] | dict[str, Any]],
    config: Any,
    *,
    provides: str | Iterable[str] = (),
) -> Optimizer:
    """Build the optimizer that a config node describes.

    Everything is checked before the class is called: nothing is half-built, and all
    problems of the node come in one error.

    Args:
        parameters: A module (best: errors can name its parameters), parameters,
            `(name, parameter)` pairs, or group dicts. Frozen ones are left out.
        config: A node such as `cfg.actor.optim`, an `OptimConfig`, a dict, or a plain
            Hydra node (`_target_: torch.optim.SGD`).
        provides: What this training loop promises for classes that need it:
            `closure`, `sparse_gradients`, `train_eval_modes`.

    Returns:
        The very torch optimizer, no wrapper.

    Raises:
        ConfigError: The node, the class or the parameters don't fit together.
        WrongObjectError: An argument is of the wrong kind.

    Example:
        >>> from torch import nn
        >>> config = {"optimizer": "SGD", "lr": 0.1}
        >>> optimizer = build_optimizer(nn.Linear(4, 2), config)
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('SGD', 0.1)

    """
    return build_from_node(parameters, read_node(config), promises(provides))


@dataclass(frozen=True)
class Plan:
    """One class with its arguments, ready to be called."""

    cls: type[Optimizer]
    arguments: Planned
    clip_grad: float | None


def promises(provides: str | Iterable[str] | None) -> frozenset[str]:
    """Read `provides`: one name, several or none."""
    return frozenset([provides] if isinstance(provides, str) else provides or ())


def build_from_node(source: Any, node: Node, provides: frozenset[str]) -> Optimizer:
    """Build from a node that was read; see `build_optimizer`."""
    # These import torch, and `--cfg job` must not pay for it.
    from optim_hydra.clipping import clip_before_step  # noqa: PLC0415
    from optim_hydra.parameter_checks import check_parameters  # noqa: PLC0415
    from optim_hydra.parameters import read_parameters  # noqa: PLC0415

    parameters = read_parameters(source)
    problems = Problems(node.at)
    plan = plan_node(node, problems)
    if plan is None:
        raise problems.error()
    clips = plan.clip_grad is not None
    check_parameters(parameters, plan.cls, problems, clips=clips)
    _check_protocol(plan.cls, provides, problems)
    problems.raise_if_any()
    optimizer = _construct(plan, parameters.for_optimizer(), node.at)
    if plan.clip_grad is not None:
        clip_before_step(optimizer, plan.clip_grad)
    _tell(optimizer, plan, provides, node.at)
    JOURNAL.built.add(node.at)
    return optimizer


def plan_node(
    node: Node, problems: Problems, *, allow_open: bool = False
) -> Plan | None:
    """Find the class and fit its arguments; note what is wrong."""
    if node.target:
        problems.found += node.unresolved
        impl, _, name = node.target.rpartition(".")
        target: Target | None = Target(impl, name, "_target_", "_target_")
        given, strict, clip_grad = given_by_plain_node(node.arguments()), True, None
    else:
        optim = read_config(node, problems, allow_open=allow_open)
        if not _has_class(node, problems):
            return None
        target = resolve_target(optim.optimizer_impl, optim.optimizer, problems)
        given = given_by_config(optim, problems)
        strict, clip_grad = optim.strict, optim.clip_grad
    cls = None if target is None else load_class(target, problems)
    if cls is None:
        return None
    arguments = plan_arguments(cls, given, problems, strict=strict)
    return Plan(cls, arguments, clip_grad)


def _has_class(node: Node, problems: Problems) -> bool:
    """Whether both fields that name the class have a value that can be used."""
    keys = ("optimizer", "optimizer_impl")
    wrong = {join_key(node.at, key) for key in keys}
    is_open = any(node.items.get(key) == "???" for key in keys)
    return not is_open and not wrong & {problem.key for problem in problems.found}


def _check_protocol(
    cls: type[Optimizer], provides: frozenset[str], problems: Problems
) -> None:
    for unknown in sorted(provides - PROTOCOLS.keys()):
        near = nearest(unknown, PROTOCOLS)
        what = f"provides={unknown!r} is none of {', '.join(PROTOCOLS)}{near}"
        problems.add(what)
    need = need_of(cls)
    if need.protocol and need.protocol not in provides and not need.only_warn:
        what = (
            f"{cls.__name__} needs {PROTOCOLS[need.protocol]}; where the training loop"
            f" does this, say provides=[{need.protocol!r}] to build_optimizer"
        )
        problems.add(what, "optimizer")


def _construct(plan: Plan, parameters: Any, at: str) -> Optimizer:
    name = f"{plan.cls.__module__}.{plan.cls.__qualname__}"
    try:
        optimizer: object = plan.cls(parameters, **plan.arguments.kwargs)
    except (Exception, SystemExit) as error:
        keys = [
            join_key(at, key)
            for name, key in plan.arguments.keys.items()
            if re.search(rf"\b{re.escape(name)}\b", str(error), re.IGNORECASE)
        ]
        what = f"{name} refuses its arguments: {type(error).__name__}: {error}"
        problem = Problem(what, ", ".join(keys) or at, ConfigError)
        raise ConfigError([problem]) from error
    if isinstance(optimizer, plan.cls) and hasattr(optimizer, "param_groups"):
        return optimizer
    what = f"calling {name} makes no optimizer with param_groups: the class is broken"
    raise ConfigError([Problem(what, join_key(at, "optimizer"), ConfigError)])


def _tell(optimizer: Optimizer, plan: Plan, provides: frozenset[str], at: str) -> None:
    """Say what was built, and warn about what was dropped."""
    for sentence in plan.arguments.dropped:
        warnings.warn(sentence, OptimHydraWarning, stacklevel=4)
        log.warning(sentence)  # Python shows a warning once; each job has its own log
    need = need_of(plan.cls)
    if need.only_warn:
        optimizer.train()  # type: ignore[attr-defined]
        if need.protocol not in provides:
            text = "%s: %s expects the training loop to call %s"
            log.warning(
                text, at or "optim", plan.cls.__name__, PROTOCOLS[need.protocol]
            )
    tensors = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = sum(p.numel() for p in tensors)
    text = "%s: %s of %d numbers in %d tensors, %s"
    kwargs = plan.arguments.kwargs
    log.info(text, at or "optim", plan.cls.__name__, numbers, len(tensors), kwargs)
