"""Check saved state against an optimizer: names, classes and shapes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.declared import path_of
from optim_hydra.errors import closest
from optim_hydra.kept_checks import check_kept
from optim_hydra.saved_state import SavedState
from optim_hydra.state_shapes import ONE_VECTOR, StateShapes
from optim_hydra.state_slots import Slot, arguments_of
from optim_hydra.torch_classes import is_torch_class, saved_class, settings_fit
from optim_hydra.unmatched import listed
from optim_hydra.watch import frozen_names

__all__ = ["Fit", "check_fit", "check_values"]

_SHOWN = 5
_WITHOUT_TENSORS = {bool, int, float, str, type(None)}


@dataclass
class Fit:
    """What of the saved state an optimizer takes."""

    fresh: list[str] = field(default_factory=list)
    """Parameters that start without state."""
    dropped: list[str] = field(default_factory=list)
    """Saved parameters that are frozen now."""
    unsure: dict[str, list[str]] = field(default_factory=dict)
    """Name -> keys that its class may not need; only a step tells."""
    further: list[str] = field(default_factory=list)
    """Entries that are restored, and that the class does not keep."""


def check_fit(
    optimizer: Optimizer,
    slots: Sequence[Slot],
    saved: SavedState,
    problems: list[str],
    *,
    allow_missing: bool,
) -> Fit:
    """Note names that only one side has, other classes and other shapes.

    Args:
        optimizer: What is to be restored.
        slots: Its parameters.
        saved: What was read.
        problems: Where to note them.
        allow_missing: Whether parameters without a saved state start afresh.

    """
    fit, shapes = Fit(), StateShapes(optimizer)
    names = {slot.name for slot in slots}
    unknown = [name for name in saved.values if name not in names]
    frozen = frozen_names(optimizer) if unknown else ()
    fit.dropped = [name for name in unknown if name in frozen]
    unknown = [name for name in unknown if name not in frozen]
    is_near = False
    for name in unknown[:_SHOWN]:
        # Another module's parameter of the same name is no typing error.
        alike = [n for n in closest(name, names) if _may_be_meant(n, name)]
        near = f": did you mean {', '.join(alike)}?" if alike else ""
        is_near |= bool(alike)
        problems.append(f"the saved state has {name}, the optimizer has not{near}")
    _and_more(unknown, problems)
    hint = _hint(unknown, names, is_near=is_near) if unknown else ""
    problems += [hint] if hint else []
    missing = []
    kinds: dict[int, _Kind] = {}
    for slot in slots:
        kind = kinds.get(id(slot.group))
        if kind is None:
            kind = kinds[id(slot.group)] = _kind_of(slot)
        kept, values = (each.get(slot.name, {}) for each in (saved.state, saved.values))
        small = shapes.kept(slot, values, kept.keys()) if kept else None
        what = _misfit(slot, kind, saved, small)
        if what is None:
            check_kept(slot, saved, small, shapes, problems)
            if kept and slot.name not in saved.identity:
                _note_keys(slot, kept, small, shapes, fit)
        elif allow_missing:
            fit.fresh.append(slot.name)
        else:
            missing.append(what)
    problems += _lost_shared(saved)
    problems += _reordered(slots, saved)
    problems += missing[:_SHOWN]
    _and_more(missing, problems)
    if missing:
        problems.append("to start these without state: missing='fresh'")
    return fit


def check_values(slots: Sequence[Slot], saved: SavedState, problems: list[str]) -> None:
    """Note settings without values, as a file has them that was loaded to meta."""
    if any(slot.parameter.is_meta for slot in slots):
        return
    entries = {"what belongs to no parameter": saved.shared, **saved.values}
    by_group: dict[int, tuple[str, Mapping[str, Any]]] = {}
    for name, values in entries.items():
        by_group.setdefault(id(values), (name, values))
    found = [
        f"{key} of {name} has no values, it is on the meta device: load the file with"
        " map_location='cpu'"
        for name, values in by_group.values()
        for key, value in values.items()
        if type(value) not in _WITHOUT_TENSORS  # nearly all are numbers
        for item in (value if isinstance(value, (list, tuple)) else (value,))
        if isinstance(item, Tensor) and item.is_meta
    ]
    problems += found[:_SHOWN]
    _and_more(found, problems)


def _hint(unknown: Sequence[str], names: Collection[str], *, is_near: bool) -> str:
    """Say what to do about saved names that the optimizer has not."""
    for short, long, what in (
        (unknown, names, "this optimizer's names begin with"),
        (names, unknown, "the saved names begin with"),
    ):
        some = min(long)
        start = next(
            (some.removesuffix(n) for n in short if some.endswith(f".{n}")), ""
        )
        if start and all(name.startswith(start) for name in long):
            hint = f"{what} {start!r} and the others don't: build the optimizer of"
            return f"{hint} the module that was saved, without or with that wrapper"
    if is_near:
        return ""
    return (
        "to leave removed layers out, leave their entries out of what is loaded, as"
        f" in {{k: v for k, v in saved.items() if '.{unknown[0]}' not in k}}"
    )


def _lost_shared(saved: SavedState) -> list[str]:
    """Name what was kept for no parameter and is not there."""
    kept = {
        f"{known.cls}.{k}" for known in saved.identity.values() for k in known.shared
    }
    found = [f".{key}" for key in saved.shared]
    lost = [
        key for key in sorted(kept) if not any(k.endswith(f".{key}") for k in found)
    ]
    return [f"the saved state lacks shared.{key}" for key in lost]


def _reordered(slots: Sequence[Slot], saved: SavedState) -> list[str]:
    """Name a class that keeps one vector for all, where they come in another order."""
    own: dict[int, list[str]] = {}
    for slot in slots:
        if type(slot.optimizer).__module__ == ONE_VECTOR:
            own.setdefault(id(slot.optimizer), []).append(slot.name)
    return [
        f"LBFGS keeps one vector for all parameters, saved in the order {listed(kept)},"
        f" and now they come as {listed(names)}: build it in the saved"
        " order"
        for names in own.values()
        if (kept := [name for name in saved.values if name in set(names)]) != names
    ]


def _may_be_meant(known: str, unknown: str) -> bool:
    first, last = known.split(".", maxsplit=1)[0], unknown.split(".", maxsplit=1)[0]
    return first == last or "." not in known or "." not in unknown


def _and_more(found: Sequence[str], problems: list[str]) -> None:
    if len(found) > _SHOWN:
        problems.append(f"and {len(found) - _SHOWN} more of these")


@dataclass(frozen=True)
class _Kind:
    """What the parameters of a group share."""

    path: str
    """Where the class of their optimizer is defined."""
    settings: Collection[str]
    keys: Collection[str]


def _kind_of(slot: Slot) -> _Kind:
    keys = slot.group.keys()
    settings = arguments_of(slot.optimizer) & keys
    return _Kind(path_of(type(slot.optimizer)), settings, keys | {"initial_lr"})


def _misfit(
    slot: Slot, kind: _Kind, saved: SavedState, small: Mapping[str, Any] | None
) -> str | None:
    """Say why there is no state for a parameter; None where there is."""
    name = slot.name
    if name not in saved.values:
        return f"the saved state has nothing for {name}"
    known = saved.identity.get(name)
    if known is not None:
        if known.cls == kind.path:
            return None
        return f"{name} was trained with {known.cls}, and now with {kind.path}"
    values, kept = saved.values[name], saved.state.get(name, {})
    fits = not _is_of_another_class(slot, kind, values)
    if fits and (small is None or kept.keys() <= small.keys()):
        return None
    cls = saved_class(values, kept)
    if cls is not None and cls is not type(slot.optimizer):
        return f"{name} was trained with {path_of(cls)}, and now with {kind.path}"
    return None if fits else f"{name} was trained with another class than {kind.path}"


def _is_of_another_class(slot: Slot, kind: _Kind, values: Mapping[str, Any]) -> bool:
    """Whether saved settings and those of the class are not of one kind."""
    cls: Any = type(slot.optimizer)
    if is_torch_class(cls):
        return not settings_fit(cls, frozenset(values))
    if all(key in kind.keys for key in values):
        return False
    return any(key not in values for key in kind.settings)


def _note_keys(
    slot: Slot,
    kept: Mapping[str, Any],
    small: Mapping[str, Any] | None,
    shapes: StateShapes,
    fit: Fit,
) -> None:
    """Note keys that the class would not keep, or more that it may need."""
    if small is not None:
        extra = [key for key in kept if key not in small]
        fit.further += [f"state.{slot.name}.{key}" for key in extra]
    elif lost := sorted(shapes.learnt(slot).keys() - kept.keys()):
        fit.unsure[slot.name] = lost
