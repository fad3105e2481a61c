"""Notice, before a step, that a module no longer has the parameters it was built for.

Sharding, `load_state_dict(assign=True)` and plain assignment replace parameter objects;
an optimizer that holds the old ones goes on without an error and without an effect.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.errors import OptimHydraError
from optim_hydra.parameters import Roots
from optim_hydra.survey import Entry

__all__ = ["ReplacedParameterError", "check_parameters_held", "watch"]

_ATTRIBUTE = "_optim_hydra_watch"
_SHOWN = 5


class ReplacedParameterError(OptimHydraError, RuntimeError):
    """The optimizer holds parameters that its module no longer has."""


@dataclass
class _Watch:
    """Where each parameter was found when the optimizer was built."""

    roots: list[weakref.ref[nn.Module]]
    names: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    """The `_parameters` of the owner of each."""
    locals: list[str] = field(default_factory=list)
    held: list[Tensor] = field(default_factory=list)
    is_checked: bool = False
    """Whether a container has looked already, in this step."""

    def look(self) -> None:
        """Compare what the module has with what the optimizer holds.

        Raises:
            ReplacedParameterError: They differ; the parameters are named.

        """
        # All in C: a step must not pay for Python work per parameter.
        found = map(dict.get, self.tables, self.locals)
        if not all(map(operator.is_, found, self.held)):
            self._tell_apart()

    def _tell_apart(self) -> None:
        replaced = [
            name
            for name, table, local, held in zip(
                self.names, self.tables, self.locals, self.held, strict=True
            )
            if not _is_same(table.get(local), held)
        ]
        if not replaced:
            return
        # Parametrizations and pruning move a parameter to another name.
        roots = [root for ref in self.roots if (root := ref()) is not None]
        present = {id(p) for root in roots for p in root.parameters()}
        held = dict(zip(self.names, self.held, strict=True))
        replaced = [name for name in replaced if id(held[name]) not in present]
        if replaced:
            more = len(replaced) - _SHOWN
            listed = ", ".join(replaced[:_SHOWN]) + (f" and {more} more" * (more > 0))
            msg = (
                f"the module has new parameters in place of {listed}, and the optimizer"
                " would go on updating the old ones: build it after sharding,"
                " load_state_dict(assign=True) and other changes of the module"
            )
            raise ReplacedParameterError(msg)


def _is_same(found: Any, held: Tensor) -> bool:
    from torch.distributed.tensor import DTensor  # noqa: PLC0415 - only where it differs

    # Between forward and backward FSDP2 shows whole tensors in place of its shards.
    unsharded = isinstance(held, DTensor) and not isinstance(found, DTensor)
    return found is held or (unsharded and isinstance(found, Tensor))


def watch(optimizer: Optimizer, roots: Roots, entries: Iterable[Entry]) -> None:
    """Check before each step that the modules still have the optimizer's parameters.

    Copies of the optimizer hold parameters of their own and are not checked.
    """
    ids = {id(p) for group in optimizer.param_groups for p in group["params"]}
    seen = _Watch([weakref.ref(root) for _, root in roots])
    for entry in entries:
        if id(entry.parameter) in ids:
            alias = entry.aliases[0]
            seen.names.append(alias.name)
            seen.tables.append(alias.owner._parameters)
            seen.locals.append(alias.local)
            seen.held.append(entry.parameter)
    vars(optimizer)[_ATTRIBUTE] = seen
    optimizer.register_step_pre_hook(_before_step)


def check_parameters_held(optimizers: Iterable[Optimizer]) -> None:
    """Check several optimizers before the first of them steps.

    Raises:
        ReplacedParameterError: A module has new parameters.

    """
    for optimizer in optimizers:
        seen = vars(optimizer).get(_ATTRIBUTE)
        if seen is not None:
            seen.look()
            seen.is_checked = True


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    del args, kwargs
    seen = vars(optimizer).get(_ATTRIBUTE)
    if seen is not None and not seen.is_checked:
        seen.look()
    if seen is not None:
        seen.is_checked = False
