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
_Call = tuple[Callable[..., None], tuple[Any, ...]]


def keep_on_copies(
    optimizer: Optimizer,
    function: Callable[..., None],
    *arguments: Any,
    with_state: bool = False,
) -> None:
    """Call `function(copy, *arguments)` on each copy.

    Args:
        optimizer: What may be copied or pickled.
        function: Of a module, so that it can be pickled.
        arguments: Plain values.
        with_state: Call it once the copy has its groups and state, not before. The
            optimizer's state must not hold the optimizer itself.

    """
    kept: dict[bool, dict[Callable[..., None], tuple[Any, ...]]]
    kept = vars(optimizer).setdefault(_ATTRIBUTE, {False: {}, True: {}})
    kept[with_state][function] = arguments
    cls = type(optimizer)
    is_plain = cls.__reduce_ex__ is object.__reduce_ex__
    if is_plain and cls.__reduce__ is object.__reduce__:
        copyreg.pickle(cls, _reduce)


def _reduce(optimizer: Optimizer) -> Any:
    reduced = optimizer.__reduce_ex__(2)
    kept = vars(optimizer).get(_ATTRIBUTE)
    if not kept or isinstance(reduced, str):
        return reduced
    before, after = (list(kept[with_state].items()) for with_state in (False, True))
    if after:
        return _make_whole, (type(optimizer), before, reduced[2], after)
    return _make_empty, (type(optimizer), before), *reduced[2:]


def _make_empty(cls: type[Optimizer], calls: list[_Call]) -> Optimizer:
    optimizer = cls.__new__(cls)
    for name in _HOOKS:  # torch keeps those that are there when it adds the state
        vars(optimizer)[name] = OrderedDict()
    # Copies of the copy are made by the same calls.
    vars(optimizer)[_ATTRIBUTE] = {False: dict(calls), True: {}}
    for function, arguments in calls:
        function(optimizer, *arguments)
    return optimizer


def _make_whole(
    cls: type[Optimizer], before: list[_Call], state: Any, after: list[_Call]
) -> Optimizer:
    optimizer = _make_empty(cls, before)
    vars(optimizer)[_ATTRIBUTE][True] = dict(after)
    optimizer.__setstate__(state)
    for function, arguments in after:
        function(optimizer, *arguments)
    return optimizer
