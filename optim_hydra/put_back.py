"""Put an optimizer and its schedules back as they were where a load fails midway.

What is saved is checked before, but foreign code runs in a load: setters of schedules
and of classes that keep more than torch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from optim_hydra.errors import ConfigError, Problem, told
from optim_hydra.saved_state import StateError
from optim_hydra.state_slots import Slot, inner_of, leaves, place_of

__all__ = ["all_or_nothing", "schedules_in"]


@contextmanager
def all_or_nothing(optimizer: Optimizer, slots: Sequence[Slot]) -> Iterator[None]:
    """Undo what was done to an optimizer if the rest fails.

    Raises:
        StateError: Something failed; nothing is changed.

    """
    steps = list(_ways_back(optimizer, slots))
    try:
        yield
    except Exception as error:
        for step in steps:
            step()
        at = place_of(optimizer)
        what = f"the saved state can't be loaded: {told(error)}"
        if isinstance(error, ConfigError):
            what = str(error)
        raise StateError([Problem(what, at, StateError)]) from error


def schedules_in(scheduler: LRScheduler) -> Iterator[LRScheduler]:
    """Yield a schedule and those that it is made of."""
    yield scheduler
    for each in getattr(scheduler, "_schedulers", ()):
        yield from schedules_in(each)


def _ways_back(
    optimizer: Optimizer, slots: Sequence[Slot]
) -> Iterator[Callable[[], None]]:
    held = [each for _, leaf, _ in leaves(optimizer) for _, each in inner_of(leaf)]
    for each in (optimizer, *held):
        yield _attributes(each)
    for each in held:
        yield _entries(each.state)
    for group in {id(slot.group): slot.group for slot in slots}.values():
        yield _values(group)
    for scheduler in getattr(optimizer, "lr_schedulers", {}).values():
        for part in schedules_in(scheduler):
            yield _attributes(part)


def _attributes(thing: Any) -> Callable[[], None]:
    before = dict(vars(thing))

    def restore() -> None:
        vars(thing).clear()
        vars(thing).update(before)

    return restore


def _entries(state: Any) -> Callable[[], None]:
    # What is kept for a parameter is replaced by a load, and never changed.
    before = dict(state)

    def restore() -> None:
        state.clear()
        state.update(before)

    return restore


def _values(group: dict[str, Any]) -> Callable[[], None]:
    before = dict(group)
    numbers = {k: v.clone() for k, v in group.items() if isinstance(v, Tensor)}

    def restore() -> None:
        group.clear()
        group.update(before)
        for key, value in numbers.items():
            group[key].copy_(value)

    return restore
