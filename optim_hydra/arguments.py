"""Fit what a node gives to the constructor's arguments.

What a class takes is read from its signature, never guessed from its name.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from optim_hydra.argument_values import fit_value
from optim_hydra.errors import Problems, UnknownKeyError, join_key, nearest
from optim_hydra.given import EXTRA, FIELDS, Given, are_equal
from optim_hydra.needs import ignored_by, need_of
from optim_hydra.registry import builder_of
from optim_hydra.signature import Argument, Signature, signature_of
from optim_hydra.tree import TARGET_REFUSED, has_target
from optim_hydra.value_checks import Refused

__all__ = ["Planned", "plan_arguments"]


@dataclasses.dataclass(frozen=True)
class Planned:
    """The keyword arguments of one constructor call, and what was left out."""

    kwargs: dict[str, Any]
    keys: dict[str, str]
    """Argument name -> the key that set it."""
    dropped: tuple[str, ...]
    """Sentences about values that `strict: false` let pass."""


def plan_arguments(
    cls: type, given: list[Given], problems: Problems, *, strict: bool
) -> Planned:
    """Fit the given values to the class's signature.

    Args:
        cls: The optimizer class; it is inspected and not called.
        given: Values with the keys they came from.
        problems: Where every argument that does not fit is noted.
        strict: False drops unknown arguments with a sentence each.

    """
    signature, ignored = _taken_by(cls), ignored_by(cls)
    kwargs: dict[str, Any] = {}
    keys: dict[str, str] = {}
    dropped: list[str] = []
    for item in given:
        if item.name in (signature.first, "params"):
            what = (
                f"{item.name} is set by the library: give the module to build_optimizer"
            )
            problems.add(what, item.key, UnknownKeyError)
        elif has_target({item.name: item.value}):
            # A node of ours has been checked for this; a plain Hydra node has not.
            if item.key == item.name:
                problems.add(TARGET_REFUSED, item.key, UnknownKeyError)
        elif item.name in ignored:
            if not item.is_default and not _is_own_default(cls, item):
                what = f"{cls.__name__} takes {item.name} and does nothing with it"
                problems.add(f"{what}: leave it out", item.key, UnknownKeyError)
        elif item.name in signature.arguments:
            _fit(signature, item, kwargs, problems)
            keys[item.name] = item.key
        elif not item.is_default and not _is_spare_switch(item):
            if strict:
                what = _not_taken(cls, signature, item)
                problems.add(what, item.key, UnknownKeyError)
            else:
                near = nearest(item.name, signature.arguments)
                dropped.append(
                    f"{cls.__name__} takes no {item.name}{near or ':'} dropped, since"
                    f" strict is false @ {join_key(problems.at, item.key)}"
                )
    _check_together(cls, signature, kwargs, keys, problems)
    return Planned(kwargs, keys, tuple(dropped))


def _taken_by(cls: type) -> Signature:
    """Return the signature with what a class takes in its groups alone."""
    signature, further = signature_of(cls), need_of(cls).group_keys
    if not further:
        return signature
    in_groups = {n: Argument(n, value, "") for n, value in further.items()}
    arguments = {**in_groups, **signature.arguments}
    return dataclasses.replace(signature, arguments=arguments)


def _is_own_default(cls: type, item: Given) -> bool:
    return are_equal(item.value, signature_of(cls).arguments[item.name].default)


def _fit(
    signature: Signature, item: Given, kwargs: dict[str, Any], problems: Problems
) -> None:
    argument = signature.arguments[item.name]
    length = len(argument.default) if isinstance(argument.default, tuple) else None
    if item.is_default and length is not None and length != _length(item.value):
        return  # the schema's pair of betas, untouched, for a class that wants three
    try:
        value = fit_value(item.value, argument)
        # A copy: some classes take things out of a dict that they were given.
        is_plain = isinstance(value, (bool, int, float, str))
        kwargs[item.name] = value if is_plain else copy.deepcopy(value)
    except Refused as refused:
        if not item.is_default:
            problems.add(str(refused), item.key + refused.index)


def _check_together(
    cls: type,
    signature: Signature,
    kwargs: dict[str, Any],
    keys: dict[str, str],
    problems: Problems,
) -> None:
    if kwargs.get("fused") and kwargs.get("foreach"):
        other = join_key(problems.at, keys["foreach"])
        what = (
            f"fused and foreach exclude each other: set one of them, not also {other}"
        )
        problems.add(what, keys["fused"])
    for argument in signature.arguments.values():
        if builder_of(cls) is not None:
            break  # which gives what the config does not
        if argument.is_required and argument.name not in (*keys, "params"):
            what = f"{cls.__name__} needs the argument {argument.name}: set it here"
            key = (
                argument.name if argument.name in FIELDS else f"{EXTRA}.{argument.name}"
            )
            problems.add(what, key)


def _not_taken(cls: type, signature: Signature, item: Given) -> str:
    if item.key == "implementation":
        return f"{cls.__name__} has no {item.name} implementation: leave it null"
    accepted = f"(it takes {', '.join(signature.arguments)})"
    hint = nearest(item.name, signature.arguments)
    if item.name in FIELDS:
        is_field = not item.is_plain and not item.key.startswith(EXTRA)
        at_default = f"leave {item.name} at its default, or set strict=false"
        hint = f": {at_default if is_field else 'leave it out'}"
    return f"{cls.__name__} takes no {item.name}{hint} {accepted}"


def _is_spare_switch(item: Given) -> bool:
    # "for-loop" asks for neither; a class that lacks a flag is on the loop anyway.
    return item.key == "implementation" and item.value is False


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (list, tuple)) else None
