"""Call an optimizer class, and name the keys that what it raises speaks of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import Optimizer

from optim_hydra.arguments import Planned
from optim_hydra.errors import ConfigError, Problem, join_key, told
from optim_hydra.needs import need_of
from optim_hydra.registry import builder_of
from optim_hydra.signature import signature_of
from optim_hydra.wrapping import Wrapper

__all__ = ["Caller"]

# torch compares each new group with the tensors of all earlier ones; below so many
# comparisons it does not matter.
_MANY = 20_000


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

    def wrap(self, wrapper: Wrapper, arguments: Planned, inner: Optimizer) -> Optimizer:
        """Call a wrapper with the optimizer that it wraps.

        Raises:
            ConfigError: It refuses its arguments, or makes something else.

        """
        if not wrapper.is_beside:
            return self.call(wrapper.cls, inner, arguments)
        kwargs = {**arguments.kwargs, wrapper.argument: inner}
        parameters = [p for group in inner.param_groups for p in group["params"]]
        return self.call(wrapper.cls, parameters, Planned(kwargs, arguments.keys, ()))

    def _call(self, cls: type[Optimizer], source: Any, kwargs: dict[str, Any]) -> Any:
        """Call a class; one that takes the model and parameters gets both."""
        if need_of(cls).takes_model and "params" in signature_of(cls).arguments:
            model: Any = self.module
            return cls(model, source, **kwargs)
        return _call(cls, source, kwargs)

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
                self._call(cls, source, planned.kwargs)
                if builder is None
                else builder(cls, source, self.module, **planned.kwargs)
            )
        except (Exception, SystemExit) as error:
            said = told(error)
            keys = [
                join_key(self.at, key)
                for argument, key in planned.keys.items()
                if re.search(rf"\b{re.escape(argument)}\b", said, re.IGNORECASE)
            ]
            what = f"{name} refuses its arguments: {said}"
            problem = Problem(
                what, ", ".join(keys) or join_key(self.at, where), ConfigError
            )
            raise ConfigError([problem]) from error
        if isinstance(optimizer, cls) and hasattr(optimizer, "param_groups"):
            _make_hooks_ready(optimizer)
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


def _make_hooks_ready(optimizer: Optimizer) -> None:
    """Do for a class that left torch's constructor out what unpickling would do."""
    if not hasattr(optimizer, "_optimizer_step_pre_hooks"):
        optimizer.defaults = getattr(optimizer, "defaults", {})
        Optimizer.__setstate__(optimizer, {})


def _identity(item: Any) -> int:
    return id(item[1] if isinstance(item, tuple) else item)


def _call(cls: type[Optimizer], source: Any, kwargs: dict[str, Any]) -> Any:
    """Call a class; many groups are cut out of one, which torch need not compare."""
    is_plain = cls.add_param_group is Optimizer.add_param_group
    if not is_plain or not _has_much_to_compare(source):
        return cls(source, **kwargs)
    items = [item for group in source for item in group["params"]]
    if len(set(map(_identity, items))) < len(items):
        return cls(source, **kwargs)  # torch has a word to say about that
    optimizer = cls(items, **kwargs)
    (one,) = optimizer.param_groups
    params, names = one.pop("params"), one.pop("param_names", None)
    holds_another = any(isinstance(v, Optimizer) for v in vars(optimizer).values())
    if optimizer.state or holds_another or one != optimizer.defaults:
        return cls(source, **kwargs)  # what it has made depends on the groups' values
    made, start = [], 0
    for group in source:
        place = slice(start, start + len(group["params"]))
        made.append({**one, **group, "params": params[place]})
        if names is not None:
            made[-1]["param_names"] = names[place]
        start = place.stop
    optimizer.param_groups[:] = made
    return optimizer


def _has_much_to_compare(source: Any) -> bool:
    if not (isinstance(source, list) and source and isinstance(source[0], dict)):
        return False
    num_tensors = sum(len(group["params"]) for group in source)
    return len(source) * num_tensors > _MANY
