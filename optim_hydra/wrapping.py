"""Read the node of an optimizer that wraps another one, as Lookahead and SAM do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from optim_hydra.arguments import Planned
from optim_hydra.errors import Problem, Problems, UnknownKeyError, join_key, nearest
from optim_hydra.list_checks import Items
from optim_hydra.schema import OptimConfig
from optim_hydra.signature import signature_of
from optim_hydra.value_checks import Refused, Text, is_open, shown

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = ["Wrapper", "find_wrapper", "inner_config", "inner_problems"]

EXTRA = "override_optimizer_config"
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "optimizer": Text(),
    "optimizer_impl": Text("torch.optim"),
    EXTRA: Items(),
}
_KEYS = tuple(_CHECKS)
_INSTANCE_NAMES = ("optimizer", "base_optimizer")
_CLASS_NAMES = ("base_optimizer", "optimizer_class")
_BESIDE_NAME = "wrapped_optimizer"


@dataclass(frozen=True)
class Wrapper:
    """A class that wraps another optimizer, and its own arguments."""

    cls: type[Optimizer]
    argument: str
    """Name of the argument that takes the other optimizer, or its class."""
    takes_instance: bool
    """Whether it is given an optimizer, and not a class that it calls itself."""
    is_beside: bool = False
    """Whether the optimizer comes beside the parameters, not in their place."""
    arguments: Planned | None = None


def find_wrapper(
    cls: type[Optimizer], extra: Mapping[str, Any] | None
) -> Wrapper | None:
    """Tell from its signature whether a class wraps another optimizer.

    Its first argument is one, or an argument that must be given is a class of them;
    one that need not be given counts where the config gives it.
    """
    signature = signature_of(cls)
    if signature.first in _INSTANCE_NAMES:
        return Wrapper(cls, signature.first, takes_instance=True)
    for name in _CLASS_NAMES:
        argument = signature.arguments.get(name)
        if argument and (argument.is_required or name in (extra or {})):
            return Wrapper(cls, name, takes_instance=False)
    if _BESIDE_NAME in signature.arguments and _BESIDE_NAME in (extra or {}):
        return Wrapper(cls, _BESIDE_NAME, takes_instance=True, is_beside=True)
    return None


def inner_config(
    optim: OptimConfig, wrapper: Wrapper, problems: Problems
) -> OptimConfig | None:
    """Return the node of the wrapped optimizer; note what is wrong with it.

    It has the fields of the outer node, so that `lr` and `param_groups` mean what they
    always mean; only its class and further arguments are its own.
    """
    key = f"{EXTRA}.{wrapper.argument}"
    said = (optim.override_optimizer_config or {}).get(wrapper.argument)
    if isinstance(said, str):
        said = {"optimizer": said}
    if not isinstance(said, Mapping):
        got = "" if said is None else f", not {shown(said)}"
        what = f"{wrapper.cls.__name__} wraps another optimizer: give it as"
        problems.add(f"{what} {{optimizer: AdamW}}{got}", key)
        return None
    before = len(problems.found)
    for name in said:
        if name not in _KEYS:
            near = nearest(str(name), _KEYS)
            what = f"no field {name} in a wrapped optimizer{near}"
            if name in ("lr", "weight_decay", "betas", "eps", "param_groups"):
                what = f"the wrapped optimizer takes {name} from the node: set it there"
            problems.add(what, f"{key}.{name}", UnknownKeyError)
    if "optimizer" not in said:
        problems.add("no class is given: set optimizer", key)
        return None
    inner = copy.copy(optim)
    inner.optimizer_impl, inner.override_optimizer_config = "torch.optim", {}
    _set_own(inner, said, key, problems)
    named = {f"{problems.at}." * bool(problems.at) + f"{key}.{name}" for name in _KEYS}
    broken = any(problem.key in named for problem in problems.found[before:])
    return None if broken else inner


def _set_own(
    inner: OptimConfig, said: Mapping[str, Any], key: str, problems: Problems
) -> None:
    """Set the class and the further arguments of the wrapped optimizer."""
    for name, check in _CHECKS.items():
        if name in said:
            try:
                setattr(inner, name, check(said[name]))
            except Refused as refused:
                problems.add(str(refused), f"{key}.{name}")
    for name, value in (inner.override_optimizer_config or {}).items():
        if is_open(value):
            what = f"no value is given ({value}): set {name}"
            problems.add(what, f"{key}.{EXTRA}.{name}")


def inner_problems(found: list[Problem], at: str, wrapper: Wrapper) -> list[Problem]:
    """Move problems of the wrapped optimizer to where its class and arguments stand."""
    moved = []
    for problem in found:
        key = problem.key.removeprefix(f"{at}." if at else "")
        if key.partition(".")[0] in _KEYS:
            key = join_key(at, f"{EXTRA}.{wrapper.argument}.{key}")
            moved.append(replace(problem, key=key))
        else:
            moved.append(problem)
    return moved
