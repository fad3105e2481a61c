"""Read saved optimizer state in the forms that people have, into one.

- flat: `state.{name}.{key}`, `param_groups.{name}.{key}` (ours, torchtitan's, and the
  flattened form of torch.distributed.checkpoint.state_dict);
- nested by name (the other form of torch.distributed.checkpoint.state_dict);
- `optimizer.state_dict()` of torch, by `param_names` or else by order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.errors import ConfigError, Problem
from optim_hydra.state_identity import IDENTITY, Identity, read_identity

__all__ = ["SavedState", "StateError", "read_saved"]

_NOT_VALUES = ("params", "param_names", "name")
_GROUPED = ("state", "param_groups")
_SHARED = "shared"


class StateError(ConfigError):
    """Saved state does not fit the optimizer; nothing was changed."""


@dataclass
class SavedState:
    """Saved state by parameter name."""

    state: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The group values of each parameter; every saved parameter has an entry."""
    identity: dict[str, Identity] = field(default_factory=dict)
    """Class and shape of each parameter, where it was saved by this library."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What belongs to no parameter, see `shared_state`."""
    by_order: bool = False
    """Whether the names are positions."""
    part: str = ""
    """What stood before the names, where they are a part of what was saved."""
    sizes: list[int] = field(default_factory=list)
    """Numbers of parameters of the saved groups, where they were saved as groups."""


def read_saved(saved: Any, names: Iterable[str]) -> SavedState:
    """Read saved state.

    Args:
        saved: What was loaded from a file.
        names: Names of the optimizer; they tell where a name in a flat key ends.

    Raises:
        StateError: It is in none of the known forms.

    """
    if not isinstance(saved, Mapping):
        why = f"it is of type {type(saved).__name__}"
        raise _not_a_state(why)
    groups, state = saved.get("param_groups"), saved.get("state")
    if isinstance(groups, (list, tuple)) and isinstance(state, Mapping):
        result = _of_groups(groups, state)
        added = {k: v for k, v in saved.items() if k not in _GROUPED}
        result.shared |= {f"+.{key}": value for key, value in added.items()}
        return result
    names_only = all(isinstance(key, str) for key in saved)
    if names_only and any(k.startswith(("state.", "param_groups.")) for k in saved):
        return _of_flat(saved, frozenset(names))
    why = "it has " + (", ".join(map(str, list(saved)[:3])) or "no keys")
    raise _not_a_state(why)


def _not_a_state(why: str) -> StateError:
    what = (
        f"this is no saved optimizer state ({why}): give what"
        " optimizer_state_dict(optimizer), optimizer.state_dict() or"
        " torch.distributed.checkpoint made"
    )
    return StateError([Problem(what, "", StateError)])


def _of_groups(groups: Iterable[Any], state: Mapping[Any, Any]) -> SavedState:
    result = SavedState()
    added = {key: value for key, value in state.items() if isinstance(key, str)}
    for group in groups:
        if not isinstance(group, Mapping):
            why = f"one of its groups is of type {type(group).__name__}"
            raise _not_a_state(why)
        keys = _listed(group.get("params", ()))
        result.sizes.append(len(keys))
        names = _listed(group.get("param_names", ()))
        if len(names) != len(keys):
            names = list(map(str, keys))
            result.by_order |= any(isinstance(key, int) for key in keys)
        values = {k: v for k, v in group.items() if k not in _NOT_VALUES}
        for key, name in zip(keys, names, strict=True):
            result.values[name] = values
            own = state.get(key, {})
            if not isinstance(own, Mapping):
                why = f"the state of {name} is of type {type(own).__name__}"
                raise _not_a_state(why)
            result.state[name] = dict(own)
            added.pop(key, None)  # a key of the nested form is a name
    result.shared = {f"*.{key}": value for key, value in added.items()}
    return result


def _of_flat(saved: Mapping[str, Any], names: frozenset[str]) -> SavedState:
    result = SavedState()
    start = f"{IDENTITY}."
    texts = {k.removeprefix(start): v for k, v in saved.items() if k.startswith(start)}
    blank = {name for name, text in texts.items() if isinstance(text, str) and not text}
    result.identity = {
        name: _identity(name, text) for name, text in texts.items() if name not in blank
    }
    known = names | texts.keys()
    _read_entries(saved, known, result)
    _drop_templates(result, names)
    if blank and not result.identity:
        why = "nothing was loaded into what templates=True made; it is not for saving"
        raise _not_a_state(why)
    for name in blank:
        result.state.pop(name, None)
        result.values.pop(name, None)
    for name in [*result.identity, *result.state]:
        if name not in result.values:
            result.values[name] = {}
    for name in result.values:
        if name not in result.state:
            result.state[name] = {}
    return result


def _read_entries(
    saved: Mapping[str, Any], known: frozenset[str], result: SavedState
) -> None:
    start, own, first = "", dict[str, Any](), ""
    for entry, value in saved.items():
        before, _, end = entry.rpartition(".")
        # What stands before the last dot tells the name and how the key begins, and
        # the entries of a parameter follow each other.
        if before == start and before and end:
            own[first + end] = value
            continue
        kind, _, rest = entry.partition(".")
        if kind in _GROUPED:
            name, key = _split(rest, known)
            kept = result.state if kind == "state" else result.values
            start, first = before, key.removesuffix(end)
            own = kept.setdefault(name, {})
            own[key] = value
        elif kind == _SHARED:
            result.shared[rest] = value
    for values in result.values.values():
        for key in _NOT_VALUES:
            values.pop(key, None)


def _drop_templates(saved: SavedState, names: frozenset[str]) -> None:
    """Leave out what was there to be loaded into only, see `state_templates`."""
    if not saved.identity:
        return
    if not names.isdisjoint(saved.identity):
        # What the run that saved had not is as it was given to be loaded into.
        for name in names - saved.identity.keys():
            saved.state.pop(name, None)
            saved.values.pop(name, None)
    real: set[str] = set()
    for name, known in saved.identity.items():
        _keep(saved.state, name, known.keys)
        _keep(saved.values, name, known.settings)
        real |= {f".{known.cls}.{key}" for key in known.shared}
    saved.shared = {
        key: value
        for key, value in saved.shared.items()
        if any(f".{key}".endswith(end) for end in real)
    }


def _keep(kept: dict[str, dict[str, Any]], name: str, keys: Collection[str]) -> None:
    own = kept.get(name, {})
    if any(key not in keys for key in own):
        kept[name] = {key: value for key, value in own.items() if key in keys}


def _listed(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)) and not any(
        not isinstance(item, (int, str)) for item in value
    ):
        return list(value)
    why = f"a group has {type(value).__name__} where a list of names or numbers is due"
    raise _not_a_state(why)


def _identity(name: str, text: Any) -> Identity:
    try:
        if isinstance(text, str):
            return read_identity(text)
        why = f"it is of type {type(text).__name__}"
    except ValueError as error:
        why = str(error)
    why = f"its entry {IDENTITY}.{name} can't be read: {why}"
    raise _not_a_state(why)


def _split(entry: str, names: frozenset[str]) -> tuple[str, str]:
    """Split `blocks.0.weight.exp_avg` where a known name ends; both may have dots."""
    if "." not in entry.strip("."):
        why = f"its entry for {entry!r} names no parameter and key"
        raise _not_a_state(why)
    at = len(entry)
    while (at := entry.rfind(".", 0, at)) > 0:
        if entry[:at] in names:
            return entry[:at], entry[at + 1 :]
    name, _, key = entry.rpartition(".")
    return name, key
