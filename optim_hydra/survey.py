"""Walk modules once and list every parameter with its names and owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

__all__ = ["Alias", "Entry", "survey"]

# Children that wrappers put between a module and its parameters: FSDP1,
# torch.compile, activation checkpointing; `module` is one below these classes only.
_WRAPPED = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")
_DATA_PARALLEL = (nn.parallel.DistributedDataParallel, nn.DataParallel)

_VISITS = 64


class Alias(NamedTuple):
    """One of the names of a parameter, and the module that holds it by this name."""

    name: str
    owner: nn.Module
    """The module that computes with it: of a parametrized one, that module itself."""
    local: str
    """Name there, such as `weight`."""
    table: dict[str, Any]
    """The `_parameters` that it stands in."""
    key: str
    """Its key there."""


@dataclass(slots=True)
class Entry:
    """One parameter under all of its names; tied ones have several."""

    parameter: Tensor
    aliases: list[Alias] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name that `named_parameters` gives, without wrappers' segments."""
        return self.aliases[0].name


def survey(modules: Iterable[tuple[str, nn.Module]]) -> list[Entry]:
    """List the parameters of modules, each once, in the order of `named_parameters`.

    Args:
        modules: Pairs of a prefix, such as `actor.` or nothing, and a module.

    """
    roots = list(modules)
    entries = _walk(roots, unwrap=True)
    names = [alias.name for entry in entries for alias in entry.aliases]
    if len(set(names)) < len(names):
        # A child of the user's own is called like a wrapper's segment.
        return _walk(roots, unwrap=False)
    return entries


def _walk(roots: list[tuple[str, nn.Module]], *, unwrap: bool) -> list[Entry]:
    entries: dict[int, Entry] = {}
    # Above each module are those on the way to it: a module may hold itself.
    stack: list[tuple[str, nn.Module, tuple[nn.Module, ...]]] = [
        (prefix, module, ()) for prefix, module in reversed(roots)
    ]
    visits: Counter[int] = Counter()
    while stack:
        prefix, module, above = stack.pop()
        visits[id(module)] += 1
        if visits[id(module)] > _VISITS:
            continue  # modules shared by shared ones have names without number
        for local, parameter in module._parameters.items():
            if parameter is not None:
                entry = entries.get(id(parameter))
                if entry is None:
                    entry = entries[id(parameter)] = Entry(parameter)
                table, owner, name = module._parameters, module, local
                if isinstance(module, ParametrizationList):
                    # Below `parametrizations.weight` of the module two steps above.
                    owner = above[-2]
                    name = prefix.split(".")[-2]
                    name += "" if local == "original" else f"_{local}"
                entry.aliases.append(Alias(prefix + local, owner, name, table, local))
        children = module._modules
        if not children:
            continue
        here = (*above, module)
        for name, child in reversed(children.items()):
            if child is None or any(child is other for other in here):
                continue
            hidden = unwrap and _is_wrapper(module, name)
            stack.append((prefix if hidden else f"{prefix}{name}.", child, here))
    return list(entries.values())


def _is_wrapper(module: nn.Module, child: str) -> bool:
    return child in _WRAPPED or (
        child == "module" and isinstance(module, _DATA_PARALLEL)
    )
