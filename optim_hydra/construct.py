"""Call an optimizer class with its groups, and check that it takes them."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.arguments import Planned
from optim_hydra.declared import DECLARED
from optim_hydra.errors import ConfigError, Problem, Problems, join_key
from optim_hydra.groups import ClassGroups, Group
from optim_hydra.planning import Variant

__all__ = ["call_class", "construct"]

# torch compares each new group with all earlier ones; below this it does not matter.
_FEW = 32
_GROUP_KEYS = ("params", "param_names", "name", "initial_lr")


def construct(groups: ClassGroups, at: str, *, named: bool) -> Optimizer:
    """Make the optimizer of one class.

    Args:
        groups: The class, its arguments and its groups.
        at: The node's place.
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
        _try(variant, at)
    planned = Planned(arguments, _full_keys(first), ())
    optimizer = call_class(groups.cls, source, planned, at)
    _check_group_values(optimizer, groups, arguments, at)
    return optimizer


def _params(group: Group, *, named: bool) -> list[Any]:
    if named:
        return [(entry.name, entry.parameter) for entry in group.entries()]
    return [entry.parameter for entry in group.entries()]


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


def _try(variant: Variant, at: str) -> None:
    """Let the class check the further arguments of a rule, as it does for its own.

    Optimizers check what they are constructed with and take group values unseen.
    """
    own = [key for key in variant.arguments.keys.values() if "." in key]
    if own:
        planned = Planned(variant.arguments.kwargs, _full_keys(variant), ())
        call_class(variant.cls, [torch.zeros(1, 1, requires_grad=True)], planned, at)


def call_class(
    cls: type[Optimizer], source: Any, planned: Planned, at: str
) -> Optimizer:
    """Call a class; whatever it raises names the keys of the arguments it speaks of."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    try:
        optimizer: object = _call(cls, source, planned.kwargs)
    except (Exception, SystemExit) as error:
        keys = [
            join_key(at, key)
            for argument, key in planned.keys.items()
            if re.search(rf"\b{re.escape(argument)}\b", str(error), re.IGNORECASE)
        ]
        what = f"{name} refuses its arguments: {type(error).__name__}: {error}"
        problem = Problem(what, ", ".join(keys) or at, ConfigError)
        raise ConfigError([problem]) from error
    if isinstance(optimizer, cls) and hasattr(optimizer, "param_groups"):
        return optimizer
    what = f"calling {name} makes no optimizer with param_groups: the class is broken"
    raise ConfigError([Problem(what, join_key(at, "optimizer"), ConfigError)])


def _call(cls: type[Optimizer], source: Any, kwargs: dict[str, Any]) -> Any:
    grouped = isinstance(source, list) and bool(source) and isinstance(source[0], dict)
    if not grouped or len(source) <= _FEW:
        return cls(source, **kwargs)
    if cls.add_param_group is not Optimizer.add_param_group:
        return cls(source, **kwargs)
    params = [item for group in source for item in group["params"]]
    optimizer = cls(params, **kwargs)
    if optimizer.state:
        return cls(source, **kwargs)  # what it has made depends on the groups' values
    (one,) = optimizer.param_groups
    common = {k: v for k, v in one.items() if k not in ("params", "param_names")}
    optimizer.param_groups[:] = [_group_like(common, group) for group in source]
    return optimizer


def _group_like(common: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
    items = group["params"]
    result = {**common, **group, "params": items}
    if items and isinstance(items[0], tuple):
        result["params"] = [parameter for _, parameter in items]
        result["param_names"] = [name for name, _ in items]
    return result


def _check_group_values(
    optimizer: Optimizer, groups: ClassGroups, arguments: dict[str, Any], at: str
) -> None:
    problems = Problems(at)
    declared = {
        name for base in groups.cls.__mro__ for name in DECLARED.arguments.get(base, ())
    }
    known = {*_GROUP_KEYS, *optimizer.defaults, *declared}
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
