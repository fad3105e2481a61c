"""Call an optimizer class, and name the keys that what it raises speaks of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import Optimizer

from optim_hydra.arguments import Planned
from optim_hydra.errors import ConfigError, Problem, join_key
from optim_hydra.registry import builder_of
from optim_hydra.wrapping import Wrapper

__all__ = ["Caller"]

# torch compares each new group with all earlier ones; below this it does not matter.
_FEW = 32


@dataclass(frozen=True)
class Caller:
    """Calls the classes of one node."""

    at: str
    """The node's place, for errors."""
    module: nn.Module | None = None
    """The model, for builders that were registered."""
    wrapper: Wrapper | None = None
    """A class that takes the node's class as an argument, and makes it itself."""

    def call_wrapped(
        self, cls: type[Optimizer], source: Any, planned: Planned, where: str = ""
    ) -> Optimizer:
        """Call a class, or the wrapper with it and the arguments of both."""
        wrapper = self.wrapper
        if wrapper is None or wrapper.arguments is None:
            return self.call(cls, source, planned, where)
        own = wrapper.arguments
        kwargs = {**planned.kwargs, **own.kwargs, wrapper.argument: cls}
        merged = Planned(kwargs, {**planned.keys, **own.keys}, ())
        return self.call(wrapper.cls, source, merged)

    def call(
        self, cls: type[Optimizer], source: Any, planned: Planned, where: str = ""
    ) -> Optimizer:
        """Call a class, or the builder that was registered for it.

        Args:
            cls: The class.
            source: What its first argument takes.
            planned: Its keyword arguments.
            where: The rule that gives them, for errors that name no argument.

        Raises:
            ConfigError: It refuses its arguments, or makes something else.

        """
        name = f"{cls.__module__}.{cls.__qualname__}"
        builder = builder_of(cls)
        try:
            optimizer: object = (
                _call(cls, source, planned.kwargs)
                if builder is None
                else builder(cls, source, self.module, **planned.kwargs)
            )
        except (Exception, SystemExit) as error:
            keys = [
                join_key(self.at, key)
                for argument, key in planned.keys.items()
                if re.search(rf"\b{re.escape(argument)}\b", str(error), re.IGNORECASE)
            ]
            what = f"{name} refuses its arguments: {type(error).__name__}: {error}"
            problem = Problem(
                what, ", ".join(keys) or join_key(self.at, where), ConfigError
            )
            raise ConfigError([problem]) from error
        if isinstance(optimizer, cls) and hasattr(optimizer, "param_groups"):
            if builder is not None:
                self._check_built(optimizer, source)
            return optimizer
        what = f"calling {name} makes no optimizer with param_groups: the class is"
        problem = Problem(f"{what} broken", join_key(self.at, "optimizer"), ConfigError)
        raise ConfigError([problem])

    def _check_built(self, optimizer: Optimizer, source: Any) -> None:
        """Refuse what a builder made without the groups that it was given."""
        given = source if source and isinstance(source[0], dict) else None
        wanted = [g["params"] for g in given] if given else [source]
        held = [group["params"] for group in optimizer.param_groups]
        if [list(map(_identity, g)) for g in wanted] == [
            list(map(id, g)) for g in held
        ]:
            return
        name = type(optimizer).__name__
        what = f"the builder of {name} makes other groups than it was given: pass its"
        problem = Problem(
            f"{what} `parameters` on", join_key(self.at, "optimizer"), ConfigError
        )
        raise ConfigError([problem])


def _identity(item: Any) -> int:
    return id(item[1] if isinstance(item, tuple) else item)


def _call(cls: type[Optimizer], source: Any, kwargs: dict[str, Any]) -> Any:
    grouped = isinstance(source, list) and bool(source) and isinstance(source[0], dict)
    if not grouped or len(source) <= _FEW:
        return cls(source, **kwargs)
    if cls.add_param_group is not Optimizer.add_param_group:
        return cls(source, **kwargs)
    params = [item for group in source for item in group["params"]]
    optimizer = cls(params, **kwargs)
    holds_another = any(isinstance(v, Optimizer) for v in vars(optimizer).values())
    if optimizer.state or holds_another:
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
