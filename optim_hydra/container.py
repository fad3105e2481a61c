"""Own `OptimizersContainer`: several optimizers that look like one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.container_checks import (
    check_closure,
    check_new_group,
    check_optimizers,
    works_with_closures,
)
from optim_hydra.errors import WrongObjectError
from optim_hydra.hooked_state import hooked_load, hooked_state_dict
from optim_hydra.hooked_step import hooked
from optim_hydra.inner_optimizers import InnerOptimizers
from optim_hydra.model_parts import build_parts
from optim_hydra.unwrapping import is_wrapper
from optim_hydra.watch import look_before

__all__ = ["OptimizersContainer"]

T = TypeVar("T", bound=Optimizer)


class OptimizersContainer(InnerOptimizers[T]):
    """Hold several optimizers, and be one for whoever takes a torch optimizer.

    `param_groups` and `state` are live views of the inner optimizers', hooks fire
    once a step, and schedulers, `GradScaler` and gradient clipping work on all of
    them. Iterating gives the inner optimizers, `container["critic"]` one of them.

    Example:
        >>> from torch import nn
        >>> parts = [nn.Linear(4, 4), nn.Linear(4, 2)]
        >>> container = OptimizersContainer(parts, torch.optim.SGD, {"lr": 0.1})
        >>> len(container), [group["lr"] for group in container.param_groups]
        (2, [0.1, 0.1])

    """

    def __init__(
        self,
        model_parts: Sequence[nn.Module],
        optimizer_cls: type[T],
        optimizer_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Make one optimizer of a class for each part of a model.

        Args:
            model_parts: Modules, such as the stages of a pipeline on this process.
            optimizer_cls: Any optimizer class.
            optimizer_kwargs: What it is called with, beside the parameters.

        Raises:
            ConfigError: The class does not take an argument, or a part has nothing
                to train.
            WrongObjectError: An argument is of the wrong kind.

        """
        self.hold(build_parts(model_parts, optimizer_cls, optimizer_kwargs or {}))

    @classmethod
    def of(
        cls,
        optimizers: Mapping[str, T],
        *,
        extends: str | None = None,
        lr_schedulers: Mapping[str, LRScheduler] | None = None,
        prefixed: bool = False,
    ) -> OptimizersContainer[T]:
        """Hold optimizers that exist already.

        Args:
            optimizers: Name -> optimizer, in the order of their steps.
            extends: The one that `add_param_group` adds to.
            lr_schedulers: Name -> the schedule that each step advances.
            prefixed: Whether the names stand before those of parameters in saved state.

        """
        check_optimizers(optimizers)
        container = cls.__new__(cls)
        container.hold(optimizers)
        container._extends = extends
        container._is_prefixed = prefixed
        container.lr_schedulers = dict(lr_schedulers or {})
        return container

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let the hooks fire once where a subclass's `step` calls this one's."""
        super().__init_subclass__(**kwargs)
        # A trainer's wrapper passes the step on to a container, whose hooks fire then.
        if not is_wrapper(cls) and not hasattr(cls.step, "hooked"):
            cls.step = hooked(cls.step)  # type: ignore[method-assign]

    @hooked
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step with every inner optimizer, then with the schedules in here.

        An update that is skipped (`GradScaler` does not call this then) leaves the
        schedules where they are.

        Args:
            closure: Computes the gradients and returns the loss. It is called once,
                before the steps, and then by each class that works with closures
                (LBFGS).

        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        check_closure(self._named, closure)
        look_before(self._named)
        for inner in self._named.values():
            if closure is not None and works_with_closures(inner):
                inner.step(closure)
            else:
                inner.step()
        for scheduler in self.lr_schedulers.values():
            scheduler.step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT002 - as torch
        """Clear the gradients of all inner optimizers."""
        for inner in self._named.values():
            inner.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group to the optimizer of the node's own class.

        Raises:
            ConfigError: A parameter of it is in the container already.
            WrongObjectError: Several optimizers could take it; say which:
                `container["critic"].add_param_group(group)`.

        """
        check_new_group(self.param_groups, param_group)
        name = self._extends or (self.names[0] if len(self) == 1 else None)
        if name is None:
            msg = (
                f"the group could go to any of {', '.join(self.names)}: say which,"
                f" container[{self.names[0]!r}].add_param_group(group)"
            )
            raise WrongObjectError(msg)
        self._named[name].add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """Return the state by parameter name, `state.{name}.{key}`, and the schedules.

        Names of modules that were named (`build_optimizers`) stand before those of
        their parameters.
        """
        return hooked_state_dict(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, matched by name and never by order.

        Each node's `on_resume` says whose lr, weight decay and schedule hold; a
        schedule goes on at its saved step. `load_optimizer_state_dict` has further
        options and returns a report.

        Raises:
            StateError: The saved state does not fit; nothing is changed.

        """
        hooked_load(self, state_dict)

    def train(self) -> None:
        """Put the classes that have modes (schedule-free ones) into train mode."""
        self._switch("train")

    def eval(self) -> None:
        """Put the classes that have modes into eval mode, to evaluate or to save."""
        self._switch("eval")

    def _switch(self, mode: str) -> None:
        for inner in self._named.values():
            switch = getattr(inner, mode, None)
            if callable(switch):
                switch()
