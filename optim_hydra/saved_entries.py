"""Read saved state in the forms that people have, into one.

- flat: `state.{name}.{key}`, `param_groups.{name}.{key}` (ours, torchtitan's, and the
  flattened form of torch.distributed.checkpoint.state_dict);
- nested by name (the other form of torch.distributed.checkpoint.state_dict);
- `optimizer.state_dict()` of torch, by `param_names` or else by order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from optim_hydra.saved_groups import of_groups
from optim_hydra.saved_state import NOT_VALUES, SavedState, not_a_state
from optim_hydra.state_identity import IDENTITY, Identity, read_identity

__all__ = ["read_saved"]

_GROUPED = ("state", "param_groups")
_SHARED = "shared"
_OTHERS = (IDENTITY, "lr_schedulers")


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
        raise not_a_state(why)
    groups, state = saved.get("param_groups"), saved.get("state")
    if isinstance(groups, (list, tuple)) and isinstance(state, Mapping):
        result = of_groups(groups, state)
        added = {k: v for k, v in saved.items() if k not in _GROUPED}
        result.shared |= {f"+.{key}": value for key, value in added.items()}
        return result
    names_only = all(issubclass(kind, str) for kind in set(map(type, saved)))
    if names_only and any(k.startswith(("state.", "param_groups.")) for k in saved):
        return _of_flat(saved, frozenset(names))
    why = "it has " + (", ".join(map(str, list(saved)[:3])) or "no keys")
    raise not_a_state(why)


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
        raise not_a_state(why)
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
        elif rest and kind not in _OTHERS:  # "run" is a program's own
            result.left.setdefault("", []).append(entry)
    for values in result.values.values():
        for key in NOT_VALUES:
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
        for kind, kept, keys in (
            ("state", saved.state, known.keys),
            ("param_groups", saved.values, known.settings),
        ):
            left = [f"{kind}.{name}.{key}" for key in _keep(kept, name, keys)]
            if left:
                saved.left.setdefault(name, []).extend(left)
        real |= {f".{known.cls}.{key}" for key in known.shared}
    left = [k for k in saved.shared if not any(f".{k}".endswith(e) for e in real)]
    for key in left:
        del saved.shared[key]
    if left:
        saved.left.setdefault("", []).extend(f"{_SHARED}.{key}" for key in left)


def _keep(
    kept: dict[str, dict[str, Any]], name: str, keys: Collection[str]
) -> list[str]:
    """Keep these keys of a parameter, and return the others."""
    own = kept.get(name, {})
    left = [key for key in own if key not in keys]
    if left:
        kept[name] = {key: value for key, value in own.items() if key in keys}
    return left


def _identity(name: str, text: Any) -> Identity:
    try:
        if isinstance(text, str):
            return read_identity(text)
        why = f"it is of type {type(text).__name__}"
    except ValueError as error:
        why = str(error)
    why = f"its entry {IDENTITY}.{name} can't be read: {why}"
    raise not_a_state(why)


def _split(entry: str, names: frozenset[str]) -> tuple[str, str]:
    """Split `blocks.0.weight.exp_avg` where a known name ends; both may have dots."""
    at = len(entry)
    while (at := entry.rfind(".", 0, at)) >= 0:
        if entry[:at] in names and entry[at + 1 :]:
            return entry[:at], entry[at + 1 :]
    if "." not in entry.strip("."):
        why = f"its entry for {entry!r} names no parameter and key"
        raise not_a_state(why)
    name, _, key = entry.rpartition(".")
    return name, key
