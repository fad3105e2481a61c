"""Make the state that a parameter starts with where nothing is restored for it.

Most classes start without; some make it in their constructor (Adagrad its sums, SaRA
its masks) and fail at the next step where it is missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim import Optimizer

from optim_hydra.signature import signature_of
from optim_hydra.state_slots import Slot

__all__ = ["fresh_states"]


def fresh_states(slots: Iterable[Slot]) -> dict[str, dict[str, Any]]:
    """Return name -> the state that a new optimizer would have for it.

    The optimizers of the slots, their parameters and random numbers stay as they are.
    """
    held: dict[int, list[Slot]] = {}
    for slot in slots:
        held.setdefault(id(slot.optimizer), []).append(slot)
    found: dict[str, dict[str, Any]] = {}
    for members in held.values():
        # What has no state now is not one of a class that makes it from the start.
        with_state = [slot for slot in members if slot.state()]
        twin = _twin(with_state) if with_state else None
        kept: Any = {} if twin is None else twin.state
        found |= {slot.name: dict(kept.get(slot.parameter, {})) for slot in members}
    return found


def _twin(slots: list[Slot]) -> Optimizer | None:
    """Build a class again for some of its parameters, if it can be."""
    optimizer = slots[0].optimizer
    cls: Any = type(optimizer)
    taken = signature_of(cls).arguments
    given = {key: value for key, value in optimizer.defaults.items() if key in taken}
    groups: dict[int, dict[str, Any]] = {}
    for slot in slots:
        own = {key: slot.group[key] for key in slot.group if key in given}
        group = groups.setdefault(id(slot.group), {"params": [], **own})
        group["params"].append(slot.parameter)
    gpus = {slot.parameter.device for slot in slots if slot.parameter.is_cuda}
    # A class that needs more than its settings has none of this.
    with contextlib.suppress(Exception), torch.random.fork_rng(gpus):
        twin: Optimizer = cls(list(groups.values()), **given)
        return twin
    return None
