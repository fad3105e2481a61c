"""Find wrappers that sum gradients over processes after each process has its own."""

from __future__ import annotations

import gc

from torch import Tensor, distributed, nn

from optim_hydra.errors import ConfigError, Problem

__all__ = ["LATER", "check_no_replicas", "later_reducer"]

LATER = (
    "{} sums gradients over processes after backward has seen them, and"
    " step_in_backward would use those of one process: shard by fully_shard (FSDP2), or"
    " set step_in_backward=false"
)
_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")


def later_reducer(module: nn.Module) -> str:
    """Return the class in a module that reduces gradients later; nothing if none."""
    names = {base.__name__ for m in module.modules() for base in type(m).__mro__}
    return next((name for name in _WRAPPERS if name in names), "")


def check_no_replicas(parameter: Tensor, key: str) -> None:
    """Refuse a parameter whose module was wrapped after the optimizer was built.

    Raises:
        ConfigError: It is in DistributedDataParallel.

    """
    is_alone = not (distributed.is_available() and distributed.is_initialized())
    if is_alone or distributed.get_world_size() == 1:
        return
    for thing in gc.get_objects():  # it stands in no table of torch
        if _WRAPPERS[0] in {base.__name__ for base in type(thing).__mro__} and any(
            held is parameter for held in thing.parameters()
        ):
            raise ConfigError([Problem(LATER.format(_WRAPPERS[0]), key, ConfigError)])
