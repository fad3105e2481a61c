"""List where the state of each parameter of an optimizer is kept, and under which name.

A container has its optimizers' slots; an optimizer that wraps another one has its own
state and the other's.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.scheduled_lr import POLICY
from optim_hydra.signature import signature_of
from optim_hydra.written_keys import written_keys

__all__ = [
    "Slot",
    "arguments_of",
    "inner_of",
    "leaves",
    "place_of",
    "set_policy",
    "slots_of",
]

_PLACE = "_optim_hydra_place"


class Slot(NamedTuple):
    """One parameter in one optimizer."""

    name: str
    parameter: Tensor
    group: dict[str, Any]
    stores: tuple[tuple[str, MutableMapping[Tensor, Any]], ...]
    """What stands before the keys of a state mapping, and the mapping."""
    optimizer: Optimizer
    on_resume: str
    """Whose settings a resumed run has: config, checkpoint or strict."""

    def state(self) -> dict[str, Any]:
        """Return what is kept for the parameter, by key."""
        state: dict[str, Any] = {}
        for prefix, store in self.stores:
            for key, value in (store.get(self.parameter) or {}).items():
                # Without a prefix the text that is there already, and its hash, serve.
                state[f"{prefix}{key}" if prefix else f"{key}"] = value
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Replace what is kept for the parameter; nothing where there is nothing."""
        left = dict(state)
        for prefix, store in reversed(self.stores):  # the longest prefix first
            own = left
            if prefix:
                keys = [key for key in left if key.startswith(prefix)]
                own = {key.removeprefix(prefix): left.pop(key) for key in keys}
            if own:
                store[self.parameter] = own
            else:
                store.pop(self.parameter, None)


def leaves(
    optimizer: Optimizer, prefix: str = "", policy: str = "config"
) -> list[tuple[str, Optimizer, str]]:
    """Return the optimizers that hold the groups.

    Those are the optimizer itself, or the ones in a container and in containers in it,
    each with what stands before its names and with its policy of resuming.
    """
    policy = vars(optimizer).get(POLICY, policy)
    prefixed = getattr(optimizer, "prefixed", None)
    if prefixed is None:
        return [(prefix, optimizer, policy)]
    inner: list[tuple[str, Optimizer]] = prefixed()
    return [
        leaf for start, each in inner for leaf in leaves(each, prefix + start, policy)
    ]


def set_policy(optimizer: Optimizer, on_resume: str, at: str) -> None:
    """Remember what the node says about resuming, and where it stands."""
    vars(optimizer)[POLICY] = on_resume
    vars(optimizer)[_PLACE] = at


def place_of(optimizer: Optimizer) -> str:
    """Return where the node stands that an optimizer was built from."""
    return str(vars(optimizer).get(_PLACE, ""))


def slots_of(optimizer: Optimizer) -> list[Slot]:
    """List the parameters of an optimizer, in the order of its groups."""
    slots: list[Slot] = []
    for prefix, leaf, policy in leaves(optimizer):
        stores = _stores(leaf)
        for group in leaf.param_groups:
            names = group.get("param_names")
            for index, parameter in enumerate(group["params"]):
                name = names[index] if names else f"parameter {len(slots)}"
                full = f"{prefix}{name}"
                slots.append(Slot(full, parameter, group, stores, leaf, policy))
    return slots


def inner_of(optimizer: Optimizer, prefix: str = "") -> list[tuple[str, Optimizer]]:
    """Return an optimizer and those that it wraps, each after its attribute's name."""
    found = [(prefix, optimizer)]
    for name, value in vars(optimizer).items():
        if isinstance(value, Optimizer):
            found += inner_of(value, f"{prefix}{name}.")
    return found


def _stores(
    optimizer: Optimizer,
) -> tuple[tuple[str, MutableMapping[Tensor, Any]], ...]:
    stores: dict[int, tuple[str, MutableMapping[Tensor, Any]]] = {}
    for prefix, each in inner_of(optimizer):
        # A wrapper may show the state of the wrapped one as its own.
        stores.setdefault(id(each.state), (prefix, each.state))
    return tuple(stores.values())


def arguments_of(optimizer: Optimizer) -> frozenset[str]:
    """Return the group keys that are settings, as opposed to counters and estimates.

    What a constructor takes is a setting, and so is what was made from it; what a class
    writes into its groups beside (Prodigy's `d`, schedule-free's `k`) it counts there.
    """
    cls: Any = type(optimizer)
    names = set(signature_of(cls).arguments)
    counted = written_keys(cls)
    if counted is not None:
        names |= optimizer.defaults.keys() - counted
    for value in vars(optimizer).values():
        if isinstance(value, Optimizer):
            names |= arguments_of(value)
    return frozenset(names)
