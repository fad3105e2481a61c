"""Name the entries of saved state that nothing reads, and those that are no template.

What was there to be loaded into only (see `state_templates`) is left out without a
word: a class has such a key, and what was saved has not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.optim import Optimizer

from optim_hydra.declared import path_of
from optim_hydra.saved_state import SavedState
from optim_hydra.state_checks import Fit
from optim_hydra.state_shapes import StateShapes
from optim_hydra.state_slots import Slot, leaves
from optim_hydra.unmatched import listed
from optim_hydra.written_keys import written_keys

__all__ = ["left_out"]

_SHOWN = 5


def left_out(
    optimizer: Optimizer, slots: Sequence[Slot], saved: SavedState, fit: Fit
) -> list[str]:
    """Return the sentences that a load has to say of what it does not know for sure."""
    known = {slot.name: slot for slot in slots}
    shapes = StateShapes(optimizer)
    unread = [
        entry
        for name, entries in saved.left.items()
        for entry in entries
        if not _is_template(entry, name, known, shapes, optimizer)
    ]
    told = []
    if saved.by_order:
        told.append("the saved state has no names: it was matched by order and shape")
    if unread:
        told.append(f"nothing reads {listed(unread, _SHOWN)}: left out")
    if fit.further:
        names = listed(fit.further, _SHOWN)
        told.append(f"no class of these parameters keeps {names}: restored as saved")
    return told


def _is_template(
    entry: str,
    name: str,
    known: Mapping[str, Slot],
    shapes: StateShapes,
    optimizer: Optimizer,
) -> bool:
    """Whether this run would have such an entry to be loaded into."""
    if name not in known:
        owners = [
            f"shared.{part}{path_of(type(leaf))}."
            for part, leaf, _ in leaves(optimizer)
        ]
        return entry.startswith(tuple(owners))
    slot = known[name]
    start = f"param_groups.{name}."
    if entry.startswith(start):
        key = entry.removeprefix(start)
        cls: Any = type(slot.optimizer)
        return key in slot.group or key in (written_keys(cls) or ())
    small = shapes.kept(slot, {}, frozenset())
    kept = shapes.learnt(slot) if small is None else small
    key = entry.removeprefix(f"state.{name}.")
    return key in kept or key in slot.state()
