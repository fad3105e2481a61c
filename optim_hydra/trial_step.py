"""Find out whether an optimizer can go on from saved state, on a copy of it.

An option that was switched on since may need state that was not kept then (amsgrad,
RMSprop's momentum; SGD's momentum does not), and a class may not take the state of
parameters that had another dtype. Both would show at the next step only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.resume_values import Difference
from optim_hydra.state_placement import placed
from optim_hydra.state_slots import Slot
from optim_hydra.state_templates import stepped

__all__ = ["note_what_fails"]

_States = Mapping[str, dict[str, Any]]
# Whatever the dtype of the parameter, some keep signs, masks and packed numbers.
_PACKED = (torch.bool, torch.uint8, torch.int8)
_HARMLESS = ("lr", "weight_decay", "maximize", "nesterov")


def note_what_fails(
    slots: Sequence[Slot],
    states: _States,
    differences: Sequence[Difference],
    problems: list[str],
    unsure: Mapping[str, Sequence[str]],
) -> None:
    """Try a step where options, dtypes or keys changed, and note why it fails.

    Args:
        slots: Parameters that get saved state.
        states: Name -> that state.
        differences: Settings that were saved with other values.
        problems: Where to note it.
        unsure: Names with keys that were not saved and may be needed.

    """
    switched, taken = _switched_on(differences)
    by_optimizer: dict[int, list[Slot]] = {}
    for slot in slots:
        by_optimizer.setdefault(id(slot.optimizer), []).append(slot)
    for members in by_optimizer.values():
        first = next((s for s in members if s.name in switched), None)
        cast = next((s for s in members if _cast(s, states)), None)
        other = next((s for s in members if s.name in unsure), None)
        is_plain = first is None and cast is None and other is None
        if is_plain or _can_go_on(members, states, taken):
            continue
        if first is not None and switched[first.name] in taken.get(first.name, {}):
            problems.append(
                f"{switched[first.name]} was saved as on, and what it needs is not in"
                f" the saved state of {first.name}"
            )
        elif first is not None:
            problems.append(
                f"{switched[first.name]} is on and was off when the state of"
                f" {first.name} was saved: what it needs is missing"
            )
        elif cast is not None:
            problems.append(
                f"{cast.name} is of {cast.parameter.dtype} and its saved state of"
                f" {_cast(cast, states)}, which {type(cast.optimizer).__name__} can't"
                " use together"
            )
        elif other is not None:
            problems.append(
                f"the saved state of {other.name} lacks"
                f" {', '.join(unsure[other.name])}, and"
                f" {type(other.optimizer).__name__} can't go on without"
            )


def _switched_on(
    differences: Sequence[Difference],
) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return name -> option that is on now, and name -> settings that are taken."""
    switched: dict[str, str] = {}
    taken: dict[str, dict[str, Any]] = {}
    for each in (d for d in differences if d.key not in _HARMLESS):
        before, after = each.saved, each.current
        if each.is_taken:
            taken |= {n: {**taken.get(n, {}), each.key: before} for n in each.names}
            before, after = after, before
        if _is_off(before) and not _is_off(after):
            switched |= dict.fromkeys(each.names, each.key)
    return switched, taken


def _is_off(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not value)


def _cast(slot: Slot, states: _States) -> torch.dtype | None:
    """Return the dtype of state that is like the parameter but for that."""
    own = slot.parameter.dtype
    for value in states.get(slot.name, {}).values():
        is_like = type(value) is Tensor and value.shape == slot.parameter.shape
        if is_like and value.dtype not in (own, *_PACKED):
            found: torch.dtype = value.dtype
            return found
    return None


def _can_go_on(slots: Sequence[Slot], states: _States, taken: _States) -> bool:
    """Whether a step works with the state; so it is taken to if none works at all."""
    optimizer = slots[0].optimizer
    kept = {
        id(slot.parameter): {
            key: placed(value, key, slot) if isinstance(value, Tensor) else value
            for key, value in states.get(slot.name, {}).items()
        }
        for slot in slots
    }
    settings = {id(slot.parameter): taken.get(slot.name, {}) for slot in slots}
    return _works(optimizer, kept, settings) or not _works(optimizer, {}, settings)


def _works(
    optimizer: Optimizer,
    states: Mapping[int, dict[str, Any]],
    settings: Mapping[int, dict[str, Any]],
) -> bool:
    try:
        stepped(optimizer, states, settings)
    except Exception:  # noqa: BLE001 - foreign code runs here
        return False
    return True
