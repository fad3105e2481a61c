"""Tell from saved settings and keys which of torch's classes kept the state."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch.optim import Optimizer

from optim_hydra.miniature import has_miniature, kept_in_miniature
from optim_hydra.signature import signature_of

__all__ = ["is_torch_class", "saved_class", "settings_fit"]

_DECOUPLED = "decoupled_weight_decay"
# torch added them to its classes one after the other; older files lack them.
_LATER = {"maximize", "foreach", "capturable", "differentiable", "fused", _DECOUPLED}


def is_torch_class(cls: type) -> bool:
    """Whether a class is one of torch itself."""
    return f"{cls.__module__}.".startswith("torch.optim.")


@functools.lru_cache(maxsize=256)
def settings_fit(cls: Any, saved: frozenset[str]) -> bool:
    """Whether saved settings can be those of a class of torch.

    A file may be older than an option. So it may lack some of the class, unless it has
    just what another class has.
    """
    telling = saved & _known()
    if telling == _core(cls):
        return True
    exact = saved & (_known() | _LATER)
    others = (_settings(other) for other in _classes() if other is not cls)
    return telling < _core(cls) and exact not in others


def saved_class(values: Mapping[str, Any], keys: Collection[str]) -> type | None:
    """Return the class of torch that saved such settings and keys, if one alone did.

    Args:
        values: Saved settings of a parameter.
        keys: Keys of its saved state; there may be none.

    """
    telling = values.keys() & _known()
    found = [cls for cls in _classes() if telling == _core(cls)]
    alike = [cls for cls in found if set(keys) == _keys(cls)]
    found = alike or found
    if len(found) > 1 and _DECOUPLED in values:
        is_decoupled = bool(values[_DECOUPLED])
        found = [cls for cls in found if (cls is torch.optim.AdamW) == is_decoupled]
    return found[0] if len(found) == 1 else None


@functools.cache
def _classes() -> tuple[Any, ...]:
    public = [value for value in vars(torch.optim).values() if isinstance(value, type)]
    return tuple(c for c in public if issubclass(c, Optimizer) and c is not Optimizer)


def _settings(cls: Any) -> frozenset[str]:
    return frozenset(signature_of(cls).arguments)


def _core(cls: Any) -> frozenset[str]:
    return _settings(cls) - _LATER


@functools.cache
def _known() -> frozenset[str]:
    """Return the keys that only some classes of torch have as a setting."""
    return frozenset[str]().union(*map(_core, _classes()))


@functools.cache
def _keys(cls: Any) -> frozenset[str]:
    made = None
    if has_miniature(cls):
        made = kept_in_miniature(cls, 2, torch.float32, {"lr": 1e-3})
    return frozenset(made or ())
