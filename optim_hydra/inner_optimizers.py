"""Show several optimizers as one: live groups and state, names, order, copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.container_checks import common_defaults, group_order
from optim_hydra.errors import WrongObjectError, nearest
from optim_hydra.inner_state import InnerState
from optim_hydra.scheduled_lr import POLICY
from optim_hydra.state_slots import place_of, set_policy

__all__ = ["InnerOptimizers"]

T = TypeVar("T", bound=Optimizer)
_STATE = (
    "_named",
    "_extends",
    "_is_prefixed",
    "_order",
    "lr_schedulers",
    "defaults",
)
_RESUMING = "resuming"


class InnerOptimizers(Optimizer, Generic[T]):
    """Hold named optimizers, and look like one; `OptimizersContainer` acts like one."""

    _named: dict[str, T]
    _extends: str | None
    _is_prefixed: bool
    _order: list[tuple[str, int]]
    lr_schedulers: dict[str, LRScheduler]
    """Name -> the schedule that each step advances."""

    def hold(self, optimizers: Mapping[str, T]) -> None:
        """Take optimizers over."""
        defaults = common_defaults(optimizers.values())
        values: tuple[Any, ...] = (dict(optimizers), None, False, [], {}, defaults)
        self.__setstate__(dict(zip(_STATE, values, strict=True)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over the inner optimizers, and make torch's hooks ready."""
        self._is_stepping = False
        kept = dict(state)
        resuming = kept.pop(_RESUMING, {})
        super().__setstate__(kept)
        for name, (on_resume, at) in resuming.items():
            if on_resume is not None:
                set_policy(self._named.get(name, self), on_resume, at)

    def __getstate__(self) -> dict[str, Any]:
        """Return the inner optimizers, and what their nodes say about resuming.

        Hooks stay behind, as torch does it.
        """
        state = {name: self.__dict__[name] for name in _STATE}
        each: dict[str, Optimizer] = {"": self, **self._named}
        state[_RESUMING] = {
            name: (vars(one).get(POLICY), place_of(one)) for name, one in each.items()
        }
        return state

    @property
    def optimizers(self) -> list[T]:
        """The inner optimizers, in the order of their steps."""
        return list(self._named.values())

    @property
    def names(self) -> list[str]:
        """The names of the inner optimizers."""
        return list(self._named)

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The groups of all inner optimizers, the very dicts that they hold."""
        held = {name: inner.param_groups for name, inner in self._named.items()}
        return [held[name][index] for name, index in self.group_order()]

    def group_order(self) -> list[tuple[str, int]]:
        """Return whose group, and which of its groups, stands at each position.

        Groups that are added later come last, so that those before stay where they
        are: schedulers go by position.
        """
        self._order = group_order(self._named, self._order)
        return self._order

    @property
    def state(self) -> InnerState:  # type: ignore[override]
        """The state of all inner optimizers."""
        return InnerState(self.optimizers)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the inner optimizers."""
        return iter(self._named.values())

    def __len__(self) -> int:
        """Count the inner optimizers."""
        return len(self._named)

    def __getitem__(self, name: str) -> T:
        """Return an inner optimizer by its name.

        Raises:
            WrongObjectError: There is none of that name.

        """
        if name not in self._named:
            there = f" (there are {', '.join(self._named)})"
            msg = (
                f"no optimizer {name!r} in here{nearest(str(name), self._named)}{there}"
            )
            raise WrongObjectError(msg)
        return self._named[name]

    def prefixed(self) -> list[tuple[str, Optimizer]]:
        """Return the inner optimizers, each after what stands before its names."""
        start = "{}." if self._is_prefixed else ""
        return [(start.format(name), inner) for name, inner in self._named.items()]

    def __repr__(self) -> str:
        """Show the inner optimizers."""
        inner = ", ".join(f"{k}: {type(v).__name__}" for k, v in self._named.items())
        return f"{type(self).__name__}({inner})"
