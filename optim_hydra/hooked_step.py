"""Let the hooks of a container fire once a step, whoever calls whose `step`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

__all__ = ["hooked"]


def hooked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run the hooks of a container around its outermost `step`, and no other.

    torch wraps the `step` of every class, so a subclass's that calls its base's would
    fire them twice.
    """
    with_hooks = Optimizer.profile_hook_step(function)

    @functools.wraps(function)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_stepping:
            return function(self, *args, **kwargs)
        self._is_stepping = True
        try:
            return with_hooks(self, *args, **kwargs)
        finally:
            self._is_stepping = False

    vars(step)["hooked"] = True  # torch wraps it no further
    return step
