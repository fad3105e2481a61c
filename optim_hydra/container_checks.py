"""Check what a container is asked to do before it changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.errors import ConfigError, Problem, WrongObjectError
from optim_hydra.needs import need_of

__all__ = [
    "check_closure",
    "check_new_group",
    "check_optimizers",
    "common_defaults",
    "group_order",
    "works_with_closures",
]


def works_with_closures(optimizer: Optimizer) -> bool:
    """Whether a class, or one in a container, calls the closure itself (LBFGS)."""
    inner: Iterable[Optimizer] | None = getattr(optimizer, "optimizers", None)
    if inner is not None:
        return any(map(works_with_closures, inner))
    return "closure" in need_of(type(optimizer)).protocol


def check_closure(named: Mapping[str, Optimizer], closure: object) -> None:
    """Refuse a step that an inner optimizer could not take.

    Raises:
        WrongObjectError: There is no closure, and one of them needs it.

    """
    wanting = [name for name, inner in named.items() if works_with_closures(inner)]
    if closure is None and wanting:
        msg = f"{wanting[0]} works with closures only: call step(closure)"
        raise WrongObjectError(msg)


def check_new_group(groups: Iterable[dict[str, Any]], new: dict[str, Any]) -> None:
    """Refuse a group with parameters that an inner optimizer has already.

    Raises:
        ConfigError: A parameter would be updated twice.

    """
    if not isinstance(new, Mapping) or "params" not in new:
        msg = "a group is a mapping with params: {'params': [...], 'lr': 0.1}"
        raise WrongObjectError(msg)
    held = {id(parameter) for group in groups for parameter in group["params"]}
    params = new["params"]
    for item in [params] if isinstance(params, Tensor) else list(params):
        if id(item[1] if isinstance(item, tuple) else item) in held:
            what = "a parameter of the new group is in this container already"
            raise ConfigError([Problem(what, "", ConfigError)])


def common_defaults(optimizers: Iterable[Optimizer]) -> dict[str, Any]:
    """Return what all optimizers take, which schedulers such as OneCycleLR look up."""
    first, *others = [optimizer.defaults for optimizer in optimizers]
    shared = set(first).intersection(*others)
    return {name: first[name] for name in first if name in shared}


def check_optimizers(named: Any) -> None:
    """Refuse what no container can hold.

    Raises:
        WrongObjectError: It is no mapping of names to optimizers.

    """
    right = isinstance(named, Mapping) and bool(named)
    if not right or not all(isinstance(each, Optimizer) for each in named.values()):
        msg = "a container holds named optimizers: {'actor': optimizer, ...}"
        raise WrongObjectError(msg)


def group_order(
    named: Mapping[str, Optimizer], known: list[tuple[str, int]]
) -> list[tuple[str, int]]:
    """List whose group, and which of its groups, stands where: new ones come last."""
    now = [
        (name, index)
        for name, inner in named.items()
        for index in range(len(inner.param_groups))
    ]
    if len(now) == len(known):
        return known
    kept = [place for place in known if place in now]
    return kept + [place for place in now if place not in kept]
