"""Make empty state, for `torch.distributed.checkpoint` to load into.

It asks for the state before it reads anything, and loads only what it was given. What
an optimizer would keep is learnt from a copy of it that takes one step on made-up
gradients; the optimizer itself, its parameters and random numbers are not touched.
"""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim import Optimizer

from optim_hydra.errors import WrongObjectError
from optim_hydra.miniature import made_up_gradient
from optim_hydra.needs import need_of
from optim_hydra.shared_state import shared_state
from optim_hydra.state_slots import leaves, slots_of

__all__ = ["Templates", "copied", "state_templates", "stepped"]

log = logging.getLogger(__name__)


@dataclass
class Templates:
    """Values of the right kind and shape."""

    state: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name of a parameter -> key -> value."""
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The same of counters that a class puts into its groups."""
    shared: dict[str, Any] = field(default_factory=dict)
    """See `shared_state`."""


def state_templates(optimizer: Optimizer) -> Templates:
    """Return what optimizers that have no state would keep after their first step.

    It takes the memory of the parameters and their state once more while it runs.
    There is none for a class whose step fails without a loss; the log names it.
    """
    found = Templates()
    for prefix, leaf, _ in leaves(optimizer):
        slots = slots_of(leaf)
        # Some that wrap another one have state of their own from the start.
        has_state = any(slot.stores[-1][1].get(slot.parameter) for slot in slots)
        shadow = None if has_state else _learnt(leaf)
        if shadow is None:
            continue
        for real, other in zip(slots, slots_of(shadow), strict=True):
            name, added = (
                f"{prefix}{real.name}",
                other.group.keys() - real.group.keys(),
            )
            found.state[name] = other.state()
            found.values[name] = {key: other.group[key] for key in added}
        shared = shared_state(shadow)
        found.shared.update({f"{prefix}{key}": value for key, value in shared.items()})
    return found


def copied(optimizer: Optimizer, memo: dict[int, Any]) -> Optimizer:
    """Copy an optimizer with its attributes, which torch leaves out, and no hooks.

    A method among them is a patch, such as a scheduler's around the original's step.
    """
    shadow = type(optimizer).__new__(type(optimizer))
    memo[id(optimizer)] = shadow
    for value in vars(optimizer).values():
        if isinstance(value, Optimizer):
            copied(value, memo)
    for name, value in vars(optimizer).items():
        if name.endswith("_hooks"):
            vars(shadow)[name] = OrderedDict()
        elif not (_is_patch(value, name, optimizer) or name.startswith("_optim_hydra")):
            vars(shadow)[name] = copy.deepcopy(value, memo)
    return shadow


def _is_patch(value: Any, name: str, optimizer: Optimizer) -> bool:
    return callable(value) and hasattr(type(optimizer), name)


def stepped(
    optimizer: Optimizer,
    states: Mapping[int, dict[str, Any]] | None = None,
    settings: Mapping[int, dict[str, Any]] | None = None,
) -> Optimizer:
    """Return a copy that has taken a step, from given state where there is some.

    Args:
        optimizer: What is copied, and stays as it is.
        states: `id` of a parameter -> what its copy starts from.
        settings: The same -> settings of its copy's group.

    Raises:
        Exception: Whatever the class raises.

    """
    shadow = copied(optimizer, {})
    for real, other in zip(slots_of(optimizer), slots_of(shadow), strict=True):
        if states is not None:
            other.set_state(dict(states.get(id(real.parameter), other.state())))
        other.group.update((settings or {}).get(id(real.parameter), {}))
        other.parameter.grad = made_up_gradient(type(optimizer), other.parameter)
    if callable(getattr(shadow, "train", None)):
        shadow.train()  # type: ignore[attr-defined]
    with torch.random.fork_rng(_gpus(shadow)):
        shadow.step(lambda: torch.zeros(()))  # type: ignore[arg-type, return-value]
    return shadow


def _learnt(optimizer: Optimizer) -> Optimizer | None:
    try:
        if need_of(type(optimizer)).protocol == "closure":
            _refuse_closures()
        return stepped(optimizer)
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        text = (
            "%s has no state to load into, since its step fails without a loss (%s):"
            " torch.distributed.checkpoint restores nothing of it before its first step"
        )
        log.warning(text, type(optimizer).__name__, error)
        return None


def _refuse_closures() -> None:
    msg = "what it keeps grows with what the closure returns"
    raise WrongObjectError(msg)


def _gpus(optimizer: Optimizer) -> list[torch.device]:
    held = {p.device for group in optimizer.param_groups for p in group["params"]}
    return [device for device in held if device.type == "cuda"]
