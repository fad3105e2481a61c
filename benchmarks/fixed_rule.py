"""Build an optimizer by a fixed rule, as verl's `build_optimizer` does (the peer).

Learning rate and weight decay always, betas where the name has "adam" in it, further
arguments last; the class is called with that, whatever its constructor takes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

__all__ = ["build_by_fixed_rule", "fixed_arguments"]

# The defaults of the peer's config.
DEFAULTS = {"lr": 1e-3, "weight_decay": 0.01, "betas": (0.9, 0.999)}


def fixed_arguments(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that the rule gives to a class of that name.

    Example:
        >>> fixed_arguments("Lion", {"lr": 0.1, "betas": (0.95, 0.98)})
        {'lr': 0.1, 'weight_decay': 0.01}

    """
    values = {**DEFAULTS, **fields}
    arguments = {"lr": values["lr"], "weight_decay": values["weight_decay"]}
    if "adam" in name.lower() or "ademamix" in name.lower():
        arguments["betas"] = values["betas"]
    return arguments


def build_by_fixed_rule(
    parameters: Iterable[Tensor],
    impl: str,
    name: str,
    fields: Mapping[str, Any],
    further: Mapping[str, Any],
) -> Any:
    """Import the module, take the class and call it; nothing is checked.

    Args:
        parameters: Of the model.
        impl: The module.
        name: The class.
        fields: Those of `lr`, `weight_decay` and `betas` that the user set.
        further: The user's further arguments.

    """
    cls = getattr(importlib.import_module(impl), name)
    return cls(parameters, **{**fixed_arguments(name, fields), **further})
