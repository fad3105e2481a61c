"""Show the state of several optimizers as one mapping, as torch's `state` is."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

__all__ = ["InnerState"]


class InnerState(MutableMapping[Tensor, Any]):
    """A live view: what is read or written here is in the optimizer that has it."""

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        """Look at these optimizers."""
        self._optimizers = optimizers

    def __getitem__(self, key: Tensor) -> Any:
        """Return a parameter's state; like torch's, an empty one where there is none.

        Raises:
            KeyError: No optimizer has the parameter.

        """
        return self._owner(key).state[key]

    def __setitem__(self, key: Tensor, value: Any) -> None:
        """Set a parameter's state in its optimizer."""
        self._owner(key).state[key] = value

    def __delitem__(self, key: Tensor) -> None:
        """Forget a parameter's state."""
        del self._owner(key).state[key]

    def __iter__(self) -> Iterator[Tensor]:
        """Iterate over the parameters that have a state."""
        for optimizer in self._optimizers:
            yield from optimizer.state

    def __len__(self) -> int:
        """Count the parameters that have a state."""
        return sum(len(optimizer.state) for optimizer in self._optimizers)

    def __contains__(self, key: object) -> bool:
        """Whether a parameter has a state."""
        return any(key in optimizer.state for optimizer in self._optimizers)

    def _owner(self, key: Tensor) -> Optimizer:
        for optimizer in self._optimizers:
            if key in optimizer.state:
                return optimizer
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                if any(key is parameter for parameter in group["params"]):
                    return optimizer
        raise KeyError(key)
