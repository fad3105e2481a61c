"""Make the optimizer of one class from its groups; check that they have an effect."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.arguments import Planned
from optim_hydra.calls import Caller
from optim_hydra.declared import DECLARED
from optim_hydra.errors import Problems, join_key
from optim_hydra.groups import ClassGroups, Group
from optim_hydra.needs import need_of
from optim_hydra.planning import Variant
from optim_hydra.registry import builder_of

__all__ = ["construct"]

_GROUP_KEYS = ("params", "param_names", "name", "initial_lr")


def construct(groups: ClassGroups, caller: Caller, *, named: bool) -> Optimizer:
    """Make the optimizer of one class.

    Args:
        groups: The class, its arguments and its groups.
        caller: Calls it.
        named: Whether the parameters have names to pass on.

    Raises:
        ConfigError: The class refuses its arguments, or a value of a group has no
            effect there.

    """
    arguments = groups.arguments()
    if len(groups.groups) == 1:
        own = _own_values(groups.groups[0], arguments)
        params = _params(groups.groups[0], named=named)
        source: list[Any] = [{"params": params, **own}] if own else params
    else:
        source = [
            {"params": _params(g, named=named), **_own_values(g, arguments)}
            for g in groups.groups
        ]
    first, *others = groups.variants
    for variant in others:
        _try(variant, caller)
    planned = Planned(arguments, _full_keys(first), ())
    optimizer = caller.call_wrapped(groups.cls, source, planned, first.at)
    _check_group_values(optimizer, groups, arguments, caller.at)
    return optimizer


def _params(group: Group, *, named: bool) -> list[Any]:
    if named:
        return [(entry.name, entry.parameter) for entry in group.entries]
    return [entry.parameter for entry in group.entries]


def _own_values(group: Group, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a group says beyond the constructor's arguments."""
    return {
        name: value
        for name, value in group.values.items()
        if name not in arguments or not _same(value, arguments[name])
    }


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return first is second
    return type(first) is type(second) and bool(first == second)


def _full_keys(variant: Variant) -> dict[str, str]:
    keys = variant.arguments.keys
    return {name: join_key(variant.at, key) for name, key in keys.items()}


def _try(variant: Variant, caller: Caller) -> None:
    """Let the class check the further arguments of a rule, as it does for its own.

    Optimizers check what they are constructed with and take group values unseen.
    """
    own = [key for key in variant.arguments.keys.values() if "." in key]
    if own and builder_of(variant.cls) is None:
        need, kwargs = need_of(variant.cls), variant.arguments.kwargs
        named = {n: v for n, v in kwargs.items() if n not in need.group_keys}
        own_values = {n: v for n, v in kwargs.items() if n in need.group_keys}
        planned = Planned(named, _full_keys(variant), ())
        stand_in: list[Any] = [torch.zeros(1, 1, requires_grad=True)]
        if own_values:
            stand_in = [{"params": stand_in, **own_values}]
        caller.call(variant.cls, stand_in, planned, variant.at)


def _check_group_values(
    optimizer: Optimizer, groups: ClassGroups, arguments: dict[str, Any], at: str
) -> None:
    problems = Problems(at)
    declared = {
        name for base in groups.cls.__mro__ for name in DECLARED.arguments.get(base, ())
    }
    base = getattr(optimizer, "base_optimizer", optimizer)
    known = {*_GROUP_KEYS, *optimizer.defaults, *base.defaults, *declared}
    known |= need_of(groups.cls).group_keys.keys()
    seen = set()
    for group in groups.groups:
        for name in _own_values(group, arguments).keys() - known:
            keys = {n: k for v in groups.variants for n, k in _full_keys(v).items()}
            for variant in groups.variants:
                if variant.at in group.rules:
                    keys |= _full_keys(variant)
            if keys[name] in seen:
                continue
            seen.add(keys[name])
            what = (
                f"{groups.cls.__name__} takes {name} for all of its parameters only:"
                " set it in the node"
            )
            problems.add(what, keys[name])
    problems.raise_if_any()
