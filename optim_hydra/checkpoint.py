"""Own `optimizer_state_dict`: the state of an optimizer, by parameter name."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.collection import without_collection
from optim_hydra.declared import path_of
from optim_hydra.errors import Problem, WrongObjectError
from optim_hydra.packed_state import pack
from optim_hydra.saved_schedules import schedule_entries
from optim_hydra.saved_state import StateError
from optim_hydra.saved_values import plain_enum, warn_of_objects
from optim_hydra.shared_state import shared_keys, shared_state
from optim_hydra.state_identity import IDENTITY, Writer
from optim_hydra.state_placement import copy_of
from optim_hydra.state_slots import slots_of
from optim_hydra.state_templates import Templates, state_templates
from optim_hydra.unwrapping import unwrapped

__all__ = ["flat_state", "optimizer_state_dict"]

_NOT_VALUES = ("params", "param_names", "name")


@without_collection()
def optimizer_state_dict(
    optimizer: Optimizer, *, templates: bool = False, packed: bool = False
) -> dict[str, Any]:
    """Return the state of an optimizer or container: one entry for each name and key.

    `state.{name}.{key}` and `param_groups.{name}.{key}`, as torch's flattened
    distributed form and torchtitan have it, so that any grouping and any number of
    processes can read it; `optim_hydra.{name}` has the class and the shapes, as JSON.
    Names of modules that were named stand before those of their parameters.
    `shared.{class}.{key}` has what belongs to no parameter, and
    `lr_schedulers.{name}.{key}` the schedules that a container advances.
    No step is taken. It loads with `torch.load(weights_only=True)`; the log names what
    a class keeps in objects of its own. The tensors of the state are those of the
    optimizer, unless they are there to be loaded into.

    Args:
        optimizer: What `build_optimizer` or `build_optimizers` returned.
        templates: Give what `torch.distributed.checkpoint.load` can load into: copies
            of the state, since it writes before it fails, and empty state for an
            optimizer that has none yet. It is not for saving.
        packed: Copy the entries of each key into one tensor, for one file of
            `torch.save`, which takes its time for each tensor. It can't be resharded.

    Raises:
        StateError: Two parameters have one name.
        WrongObjectError: The argument is no optimizer, or templates are to be packed.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer
        >>> optimizer = build_optimizer(nn.Linear(2, 1), {"optimizer": "SGD"})
        >>> optimizer_state_dict(optimizer)["param_groups.weight.lr"]
        0.001

    """
    bare = unwrapped(optimizer)
    if packed and templates:
        msg = "templates are loaded into entry by entry: leave packed out"
        raise WrongObjectError(msg)
    flat = flat_state(bare, templates=templates, copies=templates)
    return pack(flat, [slot.name for slot in slots_of(bare)]) if packed else flat


def flat_state(
    optimizer: Optimizer, *, templates: bool, copies: bool
) -> dict[str, Any]:
    """Return the state of an optimizer; see `optimizer_state_dict`.

    torch.distributed.checkpoint asks a container for one and the same dict to save and
    to load into: copies would take as much memory again to save.
    """
    slots = slots_of(optimizer)
    twice = [n for n, k in Counter(slot.name for slot in slots).items() if k > 1]
    if twice:
        what = f"two parameters are called {twice[0]}: build the optimizers by"
        what += " build_optimizers, which puts the module's name before them"
        raise StateError([Problem(what, "", StateError)])
    own = {slot.name: slot.state() for slot in slots}
    own_shared = shared_state(optimizer)
    made = state_templates(optimizer) if templates else Templates()
    state = {name: made.state.get(name, {}) | kept for name, kept in own.items()}
    shared = made.shared | own_shared
    groups = {id(slot.group): slot.group for slot in slots}
    values = {each: _values(group) for each, group in groups.items()}
    flat: dict[str, Any] = {}
    for slot in slots:
        start = f"state.{slot.name}."
        for key, value in state[slot.name].items():
            flat[start + key] = value
        start = f"param_groups.{slot.name}."
        for key, value in values[id(slot.group)]:
            flat[start + key] = value
        for key, value in made.values.get(slot.name, {}).items():
            flat[start + key] = value
    flat |= {f"shared.{key}": value for key, value in shared.items()}
    flat |= schedule_entries(optimizer)
    warn_of_objects(flat)
    if copies:
        flat = {key: _copied(value) for key, value in flat.items()}
        # What is loaded has the text that was saved.
        return flat | {f"{IDENTITY}.{slot.name}": "" for slot in slots}
    # A resumed group got some of its keys in another order.
    keys = {
        each: tuple(sorted(key for key, _ in found)) for each, found in values.items()
    }
    shared_by = shared_keys(optimizer, own_shared)
    writer = Writer()
    for slot in slots:
        flat[f"{IDENTITY}.{slot.name}"] = writer.text(
            path_of(type(slot.optimizer)),
            slot.parameter,
            own[slot.name],
            keys[id(slot.group)],
            shared_by[id(slot.optimizer)],
        )
    return flat


def _values(group: dict[str, Any]) -> list[tuple[str, Any]]:
    kept = [(k, plain_enum(v)) for k, v in group.items() if k not in _NOT_VALUES]
    # Whoever loads into what is returned would overwrite a tensor lr.
    return [(k, copy_of(v) if isinstance(v, Tensor) else v) for k, v in kept]


def _copied(value: Any) -> Any:
    return copy_of(value) if isinstance(value, Tensor) else copy.deepcopy(value)
