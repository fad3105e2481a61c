"""Save and load a container with the hooks that torch calls around `state_dict`."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

from optim_hydra.checkpoint import flat_state
from optim_hydra.resume import load_optimizer_state_dict

__all__ = ["hooked_load", "hooked_state_dict"]


def hooked_state_dict(container: Optimizer) -> dict[str, Any]:
    """Return the state by parameter name; a post hook may replace it."""
    for pre_hook in container._optimizer_state_dict_pre_hooks.values():
        pre_hook(container)
    state = flat_state(container, templates=True, copies=False)
    for post_hook in container._optimizer_state_dict_post_hooks.values():
        state = post_hook(container, state) or state
    return state


def hooked_load(container: Optimizer, saved: dict[str, Any]) -> None:
    """Restore saved state; a pre hook may replace it."""
    for pre_hook in container._optimizer_load_state_dict_pre_hooks.values():
        saved = pre_hook(container, saved) or saved
    load_optimizer_state_dict(container, saved)
    for post_hook in container._optimizer_load_state_dict_post_hooks.values():
        post_hook(container)
