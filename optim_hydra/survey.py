"""Walk modules once and list every parameter with its names and owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

__all__ = ["Alias", "Entry", "Survey", "survey"]

# Children that wrappers put between a module and its parameters: FSDP1,
# torch.compile, activation checkpointing; `module` is one below these classes only.
_WRAPPED = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")
_DATA_PARALLEL = (nn.parallel.DistributedDataParallel, nn.DataParallel)
_SEGMENTS = frozenset({*_WRAPPED, "module"})

# Modules shared by shared ones have names without number.
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


class Entry:
    """One parameter under all of its names; tied ones have several.

    It has the attributes of its first name, the one that `named_parameters` gives,
    without wrappers' segments.
    """

    # Written out, since a large model has a hundred thousand of them.
    __slots__ = ("key", "local", "name", "others", "owner", "parameter", "table")

    def __init__(  # noqa: PLR0913, PLR0917 - an Alias, unpacked for speed
        self,
        parameter: Tensor,
        name: str,
        owner: nn.Module,
        local: str,
        table: dict[str, Any],
        key: str,
    ) -> None:
        """Take a parameter and its first name."""
        self.parameter = parameter
        self.name = name
        self.owner = owner
        self.local = local
        self.table = table
        self.key = key
        self.others: tuple[Alias, ...] = ()

    @property
    def aliases(self) -> tuple[Alias, ...]:
        """All names, in the order of the modules."""
        first = Alias(self.name, self.owner, self.local, self.table, self.key)
        return (first, *self.others)


@dataclass(slots=True)
class Survey:
    """What a walk over modules has found."""

    entries: list[Entry]
    """Each parameter once, in the order of `named_parameters`."""
    tables: list[dict[str, Any]] = field(default_factory=list)
    """The `_modules` in which each module below the first ones stands."""
    keys: list[str] = field(default_factory=list)
    """Its key there."""
    modules: list[nn.Module] = field(default_factory=list)
    """The module itself; those without parameters and children are left out."""


def survey(modules: Iterable[tuple[str, nn.Module]]) -> Survey:
    """Find the parameters of modules.

    Args:
        modules: Pairs of a prefix, such as `actor.` or nothing, and a module.

    """
    roots = list(modules)
    found, is_unwrapped = _walk(roots, unwrap=True)
    if is_unwrapped:
        names = [alias.name for entry in found.entries for alias in entry.aliases]
        if len(set(names)) < len(names):
            # A child of the user's own is called like a wrapper's segment.
            found, _ = _walk(roots, unwrap=False)
    return found


def _walk(roots: list[tuple[str, nn.Module]], *, unwrap: bool) -> tuple[Survey, bool]:
    """Return what was found, and whether a wrapper's segment was left out."""
    entries: dict[int, Entry] = {}
    found = Survey([])
    is_unwrapped = False
    seen: set[int] = set()
    visits: Counter[int] = Counter()
    # The children still to visit, level by level: a chain of modules may be deep.
    levels: list[tuple[Iterator[tuple[str, Any]], str, dict[str, Any] | None]]
    levels = [(iter(roots), "", None)]
    above: list[nn.Module] = []
    while levels:
        items, prefix, siblings = levels[-1]
        for name, module in items:
            if module is None:
                continue
            if id(module) in seen and _is_enough(module, visits, above):
                continue
            seen.add(id(module))
            below = f"{prefix}{name}."
            if siblings is None:
                below = name  # the prefix of a root
            elif unwrap and name in _SEGMENTS and _is_wrapper(above[-1], name):
                below, is_unwrapped = prefix, True
            table, children = module._parameters, module._modules
            if siblings is not None and (table or children):
                found.tables.append(siblings)
                found.keys.append(name)
                found.modules.append(module)
            if table:
                _add(entries, module, below, above)
            if children:
                levels.append((iter(children.items()), below, children))
                above.append(module)
                break
        else:
            levels.pop()
            above[-1:] = []
    found.entries.extend(entries.values())
    return found, is_unwrapped


def _is_enough(module: nn.Module, visits: Counter[int], above: list[nn.Module]) -> bool:
    """Whether a module holds itself, or has been met often enough."""
    visits[id(module)] += 1
    is_above = any(module is other for other in above)
    return is_above or visits[id(module)] >= _VISITS


def _add(
    entries: dict[int, Entry],
    module: nn.Module,
    prefix: str,
    above: list[nn.Module],
) -> None:
    """Add the parameters that a module holds itself."""
    table: dict[str, Any] = module._parameters
    is_parametrized = isinstance(module, ParametrizationList)
    for key, parameter in table.items():
        if parameter is None:
            continue
        owner, local = module, key
        if is_parametrized:
            # Below `parametrizations.weight` of the module two steps above.
            owner = above[-2]
            local = prefix.split(".")[-2]
            local += "" if key == "original" else f"_{key}"
        entry = entries.get(id(parameter))
        if entry is None:
            name = prefix + key
            entries[id(parameter)] = Entry(parameter, name, owner, local, table, key)
        else:
            alias = Alias(prefix + key, owner, local, table, key)
            entry.others = (*entry.others, alias)


def _is_wrapper(module: nn.Module, child: str) -> bool:
    return child in _WRAPPED or (
        child == "module" and isinstance(module, _DATA_PARALLEL)
    )
