"""Own the flat form of optimizer state: one entry for each name and key.

`state.{name}.{key}` and `param_groups.{name}.{key}`, as torch's flattened distributed
form and torchtitan have it, so that any grouping and any number of processes can read
what another one wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.errors import ConfigError, Problem, nearest

__all__ = ["StateError", "flat_state", "leaves", "load_flat_state"]

_RUNTIME = ("params", "param_names")
_SHOWN = 5


class StateError(ConfigError):
    """Saved state does not fit the optimizer; nothing was changed."""


@dataclass(frozen=True)
class _Slot:
    """Where the state of one parameter is, and under which name it is saved."""

    name: str
    parameter: Tensor
    group: dict[str, Any]
    optimizer: Optimizer


def flat_state(optimizer: Optimizer) -> dict[str, Any]:
    """Return the state and the group values of an optimizer, by parameter name."""
    flat: dict[str, Any] = {}
    for slot in _slots(optimizer):
        for key, value in slot.optimizer.state.get(slot.parameter, {}).items():
            flat[f"state.{slot.name}.{key}"] = value
        for key, value in slot.group.items():
            if key not in _RUNTIME:
                flat[f"param_groups.{slot.name}.{key}"] = value
    return flat


def load_flat_state(optimizer: Optimizer, flat: Mapping[str, Any]) -> None:
    """Restore the state of each parameter by its name; group values stay this run's.

    Raises:
        StateError: Names are unknown or missing, or shapes differ; nothing is changed.

    """
    slots = {slot.name: slot for slot in _slots(optimizer)}
    saved = _by_name(flat, "state.", slots)
    grouped = _by_name(flat, "param_groups.", slots)
    _check(slots, saved, grouped)
    for name, slot in slots.items():
        state = {key: _placed(v, slot.parameter) for key, v in saved[name].items()}
        if state or slot.parameter in slot.optimizer.state:
            slot.optimizer.state[slot.parameter] = state


def leaves(optimizer: Optimizer, prefix: str = "") -> list[tuple[str, Optimizer]]:
    """Return the optimizers that hold the groups, with what stands before names.

    Those are the optimizer itself, or the ones in a container and in containers in it.
    """
    prefixed = getattr(optimizer, "prefixed", None)
    if prefixed is None:
        return [(prefix, optimizer)]
    inner: list[tuple[str, Optimizer]] = prefixed()
    return [leaf for start, each in inner for leaf in leaves(each, prefix + start)]


def _slots(optimizer: Optimizer) -> Iterator[_Slot]:
    position = 0
    for prefix, leaf in leaves(optimizer):
        for group in leaf.param_groups:
            names = group.get("param_names")
            for index, parameter in enumerate(group["params"]):
                name = names[index] if names else f"parameter {position}"
                position += 1
                yield _Slot(f"{prefix}{name}", parameter, group, leaf)


def _by_name(
    flat: Mapping[str, Any], start: str, slots: Mapping[str, _Slot]
) -> dict[str, dict[str, Any]]:
    """Sort entries by parameter name; names may have dots, keys may too."""
    found: dict[str, dict[str, Any]] = {name: {} for name in slots}
    for entry, value in flat.items():
        if not entry.startswith(start):
            continue
        name, key = entry.removeprefix(start), ""
        while name and name not in slots:
            name, _, last = name.rpartition(".")
            key = f"{last}.{key}" if key else last
        if name:
            found[name][key] = value
        else:
            unknown = entry.removeprefix(start).rpartition(".")[0]
            found.setdefault(unknown, {})[key] = value
    return found


def _check(
    slots: Mapping[str, _Slot],
    saved: Mapping[str, Mapping[str, Any]],
    grouped: Mapping[str, Mapping[str, Any]],
) -> None:
    problems = []
    unknown = sorted((saved.keys() | grouped.keys()) - slots.keys())
    for name in unknown[:_SHOWN]:
        near = nearest(name, slots)
        problems.append(f"the saved state has {name}, the optimizer has not{near}")
    missing = [name for name in slots if not grouped.get(name)]
    problems += [f"the saved state has nothing for {n}" for n in missing[:_SHOWN]]
    for name, slot in slots.items():
        for key, value in saved[name].items():
            own = slot.optimizer.state.get(slot.parameter, {}).get(key)
            wanted = own if isinstance(own, Tensor) else None
            if wanted is None or not isinstance(value, Tensor):
                continue
            if wanted.shape != value.shape:
                problems.append(
                    f"{name}: the saved {key} has the shape {tuple(value.shape)}, not"
                    f" {tuple(wanted.shape)}"
                )
    if problems:
        raise StateError([Problem(what, "", StateError) for what in problems])


def _placed(value: Any, parameter: Tensor) -> Any:
    """Copy a value to where its parameter is; counters stay on the CPU."""
    if not isinstance(value, Tensor):
        return value
    copy = value.detach().clone()
    return copy if copy.ndim == 0 else copy.to(parameter.device)
