"""Refuse state by parameter name in torch's own `optimizer.load_state_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.optim import Optimizer

from optim_hydra.errors import Problem
from optim_hydra.saved_state import StateError
from optim_hydra.state_slots import place_of

__all__ = ["refuse_names_in_plain_load"]


def refuse_names_in_plain_load(optimizer: Optimizer) -> None:
    """Let `optimizer.load_state_dict` say what to call for state by parameter name."""
    if hasattr(optimizer, "_optimizer_load_state_dict_pre_hooks"):  # Lookahead has none
        optimizer.register_load_state_dict_pre_hook(_refuse_names)


def _refuse_names(optimizer: Optimizer, saved: Any) -> None:
    """Check what is about to be loaded.

    Raises:
        StateError: It is what `optimizer_state_dict` returned.

    """
    if not isinstance(saved, Mapping) or "param_groups" in saved:
        return
    if any(str(key).startswith("param_groups.") for key in saved):
        what = "this is state by parameter name, which optimizer.load_state_dict does"
        what += " not read: write optim_hydra.load_optimizer_state_dict(optimizer, ...)"
        raise StateError([Problem(what, place_of(optimizer), StateError)])
