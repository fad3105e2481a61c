"""Own `SavedState`: saved state by parameter name, whatever form it was saved in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from optim_hydra.errors import ConfigError, Problem
from optim_hydra.state_identity import Identity

__all__ = ["NOT_VALUES", "SavedState", "StateError", "not_a_state"]

NOT_VALUES = ("params", "param_names", "name")


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
    left: dict[str, list[str]] = field(default_factory=dict)
    """Name -> entries that were saved by nobody, or are there to be loaded into."""


def not_a_state(why: str) -> StateError:
    """Return the error for what is in none of the known forms."""
    what = (
        f"this is no saved optimizer state ({why}): give what"
        " optimizer_state_dict(optimizer), optimizer.state_dict() or"
        " torch.distributed.checkpoint made"
    )
    return StateError([Problem(what, "", StateError)])
