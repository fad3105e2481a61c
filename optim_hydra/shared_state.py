"""Save and restore what an optimizer keeps for no parameter: counters, modes.

MADGRAD counts steps in `state["k"]`, StableSPAM in an attribute that its `state_dict`
adds, and the schedule-free wrapper says there which mode it is in.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.declared import path_of
from optim_hydra.state_slots import inner_of, leaves

__all__ = ["plan_shared", "shared_keys", "shared_state"]

log = logging.getLogger(__name__)
_TORCH = ("state", "param_groups")
_PLAIN = (Tensor, int, float, str, bool, type(None))


def shared_state(optimizer: Optimizer) -> dict[str, Any]:
    """Return `{prefix}{class}.{key}` -> value, by class so that groups may change."""
    found: dict[str, Any] = {}
    for start, each, key, value in _entries(optimizer):
        if not _can_be_saved(value):
            text = "%s keeps %r in a form that can't be saved by name: it starts afresh"
            log.warning(text, type(each).__name__, key)
        elif start + key in found and not _is_same(found[start + key], value):
            text = "%s was saved once, where two optimizers have different values"
            log.warning(text, start + key)
        else:
            found[start + key] = value
    return found


def shared_keys(
    optimizer: Optimizer, shared: Mapping[str, Any]
) -> dict[int, tuple[str, ...]]:
    """Return id of an optimizer that holds groups -> its keys in `shared_state`."""
    starts = {id(leaf): _start(part, leaf) for part, leaf, _ in leaves(optimizer)}
    return {
        each: tuple(key.removeprefix(start) for key in shared if key.startswith(start))
        for each, start in starts.items()
    }


def plan_shared(
    optimizer: Optimizer,
    saved: Mapping[str, Any],
    problems: list[str],
    *,
    is_whole: bool,
) -> list[Callable[[], None]]:
    """Return the calls that restore what was saved, each with a copy of its own.

    Args:
        optimizer: What was restored otherwise.
        saved: What `shared_state` returned; without a class, `*.{key}`, it is of
            whatever optimizer there is, and so is an attribute, `+.{key}`.
        problems: Where to note values of another kind.
        is_whole: Whether what is not in `saved` was not there either.

    """
    calls: list[Callable[[], None]] = []
    kept: set[str] = set()
    for part, leaf, _ in leaves(optimizer):
        start = _start(part, leaf)
        longest_first = inner_of(leaf)[::-1]
        for entry, value in saved.items():
            begin = next((b for b in (start, "*.", "+.") if entry.startswith(b)), None)
            if begin is None:
                continue
            key = entry.removeprefix(begin)
            prefix, each = next(p for p in longest_first if key.startswith(p[0]))
            name = key.removeprefix(prefix)
            if begin == "+." and name not in _added(each):
                log.warning("%s has no %r: it was left out", type(leaf).__name__, name)
                continue
            kept.add(start + key)
            calls.append(_setter(each, name, value))
            named: Mapping[Any, Any] = each.state
            held = _saved_form(vars(each).get(name, named.get(name)))
            if held is not None and _kind(held) is not _kind(value):
                what = f"the saved {key} is of type {type(value).__name__}, where"
                problems.append(f"{what} {type(held).__name__} is due")
    if is_whole:
        for start, each, key, _ in _entries(optimizer):
            name = key.rpartition(".")[2]
            if start + key not in kept and name in each.state:
                calls.append(_remover(each, name))
    return calls


def _kind(value: Any) -> object:
    kinds = {Tensor: Tensor, str: str, int: float, float: float, Mapping: Mapping}
    return next((k for cls, k in kinds.items() if isinstance(value, cls)), None)


def _start(part: str, leaf: Optimizer) -> str:
    return f"{part}{path_of(type(leaf))}."


def _entries(optimizer: Optimizer) -> Iterator[tuple[str, Optimizer, str, Any]]:
    seen: set[int] = set()
    for part, leaf, _ in leaves(optimizer):
        for prefix, each in inner_of(leaf):
            own: dict[str, Any] = {}
            if id(each.state) not in seen:  # a wrapper may show the wrapped one's
                named: Mapping[Any, Any] = each.state
                own = {k: v for k, v in named.items() if isinstance(k, str)}
            seen.add(id(each.state))
            own |= {key: _saved_form(vars(each)[key]) for key in _added(each)}
            for key, value in own.items():
                yield _start(part, leaf), each, f"{prefix}{key}", value


def _added(optimizer: Optimizer) -> list[str]:
    """Name the attributes that a class adds to its `state_dict`."""
    if type(optimizer).state_dict is Optimizer.state_dict:
        return []
    entries = optimizer.state_dict()
    return [
        key
        for key in entries
        if key not in _TORCH
        and key in vars(optimizer)
        and not isinstance(vars(optimizer)[key], Optimizer)
    ]


def _saved_form(value: Any) -> Any:
    own = getattr(value, "state_dict", None)
    return own() if callable(own) else value


def _can_be_saved(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _can_be_saved(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_can_be_saved, value))
    return isinstance(value, _PLAIN)


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and bool((first == second).all())
    return repr(first) == repr(second)


def _setter(optimizer: Optimizer, key: str, value: Any) -> Callable[[], None]:
    own = copy.deepcopy(value)
    held = vars(optimizer).get(key)

    def set_own() -> None:
        load = getattr(held, "load_state_dict", None)
        if callable(load):
            load(own)
        elif key in vars(optimizer):
            setattr(optimizer, key, own)
        else:
            optimizer.state[key] = own  # type: ignore[index] # the class does so too

    return set_own


def _remover(optimizer: Optimizer, key: str) -> Callable[[], None]:
    return lambda: optimizer.state.pop(key, None)  # type: ignore[call-overload]
