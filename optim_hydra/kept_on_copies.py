"""Let copies and pickles of an optimizer keep what torch leaves behind: its hooks."""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

__all__ = ["keep_on_copies"]

_ATTRIBUTE = "_optim_hydra_kept"
_HOOKS = tuple(
    f"_optimizer_{what}_{when}_hooks"
    for what in ("step", "state_dict", "load_state_dict")
    for when in ("pre", "post")
)
_Calls = dict[Callable[..., None], tuple[Any, ...]]


def keep_on_copies(
    optimizer: Optimizer, function: Callable[..., None], *arguments: Any
) -> None:
    """Call `function(copy, *arguments)` on each copy, before it has state and groups.

    Args:
        optimizer: What may be copied or pickled.
        function: Of a module, so that it can be pickled; what it keeps on the
            optimizer is kept on copies of the copy by calling this again.
        arguments: Plain values.

    """
    calls: _Calls = vars(optimizer).setdefault(_ATTRIBUTE, {})
    calls[function] = arguments
    cls = type(optimizer)
    is_plain = cls.__reduce_ex__ is object.__reduce_ex__
    if is_plain and cls.__reduce__ is object.__reduce__:
        copyreg.pickle(cls, _reduce)


def _reduce(optimizer: Optimizer) -> Any:
    reduced = optimizer.__reduce_ex__(2)
    calls: _Calls = vars(optimizer).get(_ATTRIBUTE, {})
    if not calls or isinstance(reduced, str):
        return reduced
    return _make_empty, (type(optimizer), list(calls.items())), *reduced[2:]


def _make_empty(
    cls: type[Optimizer], calls: list[tuple[Callable[..., None], tuple[Any, ...]]]
) -> Optimizer:
    optimizer = cls.__new__(cls)
    for name in _HOOKS:  # torch keeps those that are there when it adds the state
        vars(optimizer)[name] = OrderedDict()
    for function, arguments in calls:
        function(optimizer, *arguments)
    return optimizer
