"""Read saved state whose parameters are in groups: torch's, and nested by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optim_hydra.saved_state import NOT_VALUES, SavedState, not_a_state

__all__ = ["of_groups"]

_SHOWN = 5
# bitsandbytes saves quantised state one level down, where FSDP does not look.
_WRAPPED = "__bnb_optimizer_quant_state__"


def of_groups(groups: Iterable[Any], state: Mapping[Any, Any]) -> SavedState:
    """Read groups and a state by number or name.

    Raises:
        StateError: They are no groups, or do not belong together.

    """
    result = SavedState()
    left, is_nested = dict(state), False
    for group in groups:
        if not isinstance(group, Mapping):
            why = f"one of its groups is of type {type(group).__name__}"
            raise not_a_state(why)
        keys = _listed(group.get("params", ()))
        result.sizes.append(len(keys))
        is_nested |= any(isinstance(key, str) for key in keys)
        names = _listed(group.get("param_names", ()))
        if names and len(names) != len(keys):
            why = f"a group has {len(keys)} parameters and {len(names)} names"
            raise not_a_state(why)
        if not names:
            names = list(map(str, keys))
            result.by_order |= any(isinstance(key, int) for key in keys)
        values = {k: v for k, v in group.items() if k not in NOT_VALUES}
        for key, name in zip(keys, names, strict=True):
            if name in result.values:
                why = f"{name} is in its groups twice"
                raise not_a_state(why)
            result.values[name] = values
            # As JSON has them, numbers are text where they are keys.
            own = left.pop(key, left.pop(f"{key}", {}))
            if not isinstance(own, Mapping):
                why = f"the state of {name} is of type {type(own).__name__}"
                raise not_a_state(why)
            result.state[name] = _unwrapped(own)
    # What belongs to no parameter has a word for its key, as parameters may have.
    nobodys = [
        str(key)
        for key, value in left.items()
        if not isinstance(key, str)
        or key.isdigit()
        or (is_nested and isinstance(value, Mapping))
    ]
    if nobodys:
        shown = ", ".join(nobodys[:_SHOWN])
        why = f"it has state of {shown}, which is in none of its groups"
        raise not_a_state(why)
    result.shared = {f"*.{key}": value for key, value in left.items()}
    return result


def _unwrapped(own: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the state of a parameter, all of it on one level."""
    inner = own.get(_WRAPPED)
    if not isinstance(inner, Mapping):
        return dict(own)
    return {**{key: own[key] for key in own if key != _WRAPPED}, **inner}


def _listed(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)) and not any(
        not isinstance(item, (int, str)) or isinstance(item, bool) for item in value
    ):
        return list(value)
    why = f"a group has {type(value).__name__} where a list of names or numbers is due"
    raise not_a_state(why)
