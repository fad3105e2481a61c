"""Notice, before a step, that a module no longer has the parameters it was built for.

Sharding, `load_state_dict(assign=True)` and plain assignment replace parameter objects;
an optimizer that holds the old ones goes on without an error and without an effect.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.errors import OptimHydraError
from optim_hydra.parameters import Roots
from optim_hydra.survey import Survey, survey
from optim_hydra.unmatched import listed

__all__ = [
    "ReplacedParameterError",
    "check_parameters_held",
    "frozen_names",
    "look_before",
    "watch",
]

_ATTRIBUTE = "_optim_hydra_watch"


class ReplacedParameterError(OptimHydraError, RuntimeError):
    """The optimizer holds parameters that its module no longer has."""


@dataclass
class _Watch:
    """Where each parameter, and each module on the way to it, was found."""

    roots: Roots
    held: dict[str, Tensor]
    """Every name of every parameter of the optimizer."""
    tables: list[dict[str, Any]] = field(default_factory=list)
    """`_parameters` and `_modules` of the modules."""
    keys: list[str] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    is_checked: bool = False
    """Whether a container has looked already, in this step."""

    def note(self, found: Survey) -> None:
        """Note where everything is now."""
        ids = {id(parameter) for parameter in self.held.values()}
        held = [entry for entry in found.entries if id(entry.parameter) in ids]
        others = [(entry.parameter, a) for entry in held for a in entry.others]
        self.tables = [entry.table for entry in held] + found.tables
        self.tables += [alias.table for _, alias in others]
        self.keys = [entry.key for entry in held] + found.keys
        self.keys += [alias.key for _, alias in others]
        self.objects = [entry.parameter for entry in held] + found.modules
        self.objects += [parameter for parameter, _ in others]

    def look(self, optimizer: Optimizer, name: str = "") -> None:
        """Compare what the module has with what the optimizer holds.

        Raises:
            ReplacedParameterError: They differ; the parameters are named.

        """
        # All in C: a step must not pay for Python work per parameter.
        found = map(operator.getitem, self.tables, self.keys)
        try:
            is_same = all(map(operator.is_, found, self.objects))
        except KeyError:  # moved to another name, as parametrizations do it
            is_same = False
        if not is_same:
            self._tell_apart(optimizer, name)

    def _tell_apart(self, optimizer: Optimizer, name: str) -> None:
        whole = survey(self.roots)
        found = {a.name: e.parameter for e in whole.entries for a in e.aliases}
        now = {id(p) for group in optimizer.param_groups for p in group["params"]}
        for local, held in self.held.items():
            # accelerate puts its shards into the optimizer as into the module.
            if id(found.get(local)) in now and id(held) not in now:
                self.held[local] = found[local]
        present = {id(parameter) for parameter in found.values()}
        ours = {*map(id, self.held.values()), id(None)}
        gone = [
            local
            for local, held in self.held.items()
            # Parametrizations and pruning move a parameter to another name.
            if not _is_same(found.get(local), held)
            and (id(held) not in present or id(found.get(local)) not in ours)
        ]
        if gone:
            whose = f"the module {name!r}" if name else "the module"
            msg = (
                f"{whose} no longer has the parameters {listed(gone, 5)}, which its"
                " optimizer would go on updating: build the optimizer after sharding,"
                " load_state_dict(assign=True) and other changes of the module"
            )
            raise ReplacedParameterError(msg)
        if all(held is found.get(local) for local, held in self.held.items()):
            self.note(whole)


def _is_same(found: Any, held: Tensor) -> bool:
    from torch.distributed.tensor import DTensor  # noqa: PLC0415 - only where it differs

    # Between forward and backward FSDP2 shows whole tensors in place of its shards.
    unsharded = isinstance(held, DTensor) and not isinstance(found, DTensor)
    return found is held or (unsharded and isinstance(found, Tensor))


def frozen_names(optimizer: Optimizer) -> frozenset[str]:
    """Return the names that the optimizer's modules have and do not train."""
    seen = vars(optimizer).get(_ATTRIBUTE)
    own = [] if seen is None else survey(seen.roots).entries
    names = {a.name for e in own if not e.parameter.requires_grad for a in e.aliases}
    for prefix, inner in getattr(optimizer, "prefixed", list)():
        names |= {f"{prefix}{name}" for name in frozen_names(inner)}
    return frozenset(names)


def names_in_order(optimizer: Optimizer) -> list[str]:
    """Return the names of an optimizer's parameters as its module has them."""
    seen = vars(optimizer).get(_ATTRIBUTE)
    return [] if seen is None else list(seen.held)


def watch(optimizer: Optimizer, roots: Roots, found: Survey) -> None:
    """Check before each step that the modules still have the optimizer's parameters.

    Copies of the optimizer hold parameters of their own and are not checked.
    """
    ids = {id(p) for group in optimizer.param_groups for p in group["params"]}
    entries = [entry for entry in found.entries if id(entry.parameter) in ids]
    held = {entry.name: entry.parameter for entry in entries}
    held |= {a.name: entry.parameter for entry in entries for a in entry.others}
    seen = _Watch(roots, held)
    seen.note(found)
    vars(optimizer)[_ATTRIBUTE] = seen
    optimizer.register_step_pre_hook(_before_step)


def check_parameters_held(optimizer: Optimizer) -> None:
    """Check now what each step checks: that modules have the optimizer's parameters.

    Raises:
        ReplacedParameterError: They have others, which are named.

    Example:
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer
        >>> module = nn.Linear(4, 2)
        >>> optimizer = build_optimizer(module, {})
        >>> module.weight = nn.Parameter(module.weight.detach().clone())
        >>> check_parameters_held(optimizer)
        Traceback (most recent call last):
        optim_hydra.watch.ReplacedParameterError: the module no longer has ...

    """
    seen = vars(optimizer).get(_ATTRIBUTE)
    if seen is not None:
        seen.look(optimizer)
    for name, inner in getattr(optimizer, "_named", {}).items():
        own = vars(inner).get(_ATTRIBUTE)
        if own is not None:
            own.look(inner, name)


def look_before(optimizers: Mapping[str, Optimizer]) -> None:
    """Check several optimizers before the first of them steps.

    Raises:
        ReplacedParameterError: A module has new parameters.

    """
    found = {name: vars(inner).get(_ATTRIBUTE) for name, inner in optimizers.items()}
    seen = {name: each for name, each in found.items() if each is not None}
    for name, each in seen.items():
        each.look(optimizers[name], name)
    for each in seen.values():
        each.is_checked = True


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    del args, kwargs
    seen = vars(optimizer).get(_ATTRIBUTE)
    if seen is not None and not seen.is_checked:
        seen.look(optimizer)
    if seen is not None:
        seen.is_checked = False
