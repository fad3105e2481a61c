"""Turn fields and `override_optimizer_config` into the constructor's arguments.

What a class takes is read from its signature, never guessed from its name.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from optim_hydra.argument_values import fit_value
from optim_hydra.errors import Problems, UnknownKeyError, join_key, nearest
from optim_hydra.needs import ignored_by, need_of
from optim_hydra.registry import builder_of
from optim_hydra.schema import OptimConfig
from optim_hydra.signature import Argument, Signature, signature_of
from optim_hydra.tree import TARGET_REFUSED, has_target
from optim_hydra.value_checks import Refused, shown

__all__ = [
    "EXTRA",
    "FIELDS",
    "Given",
    "Planned",
    "given_by_config",
    "given_by_plain_node",
    "given_by_rule",
    "plan_arguments",
]

FIELDS = ("lr", "weight_decay", "betas", "eps")
EXTRA = "override_optimizer_config"
_FLAGS = ("foreach", "fused")
_DEFAULTS = {f.name: f.default for f in dataclasses.fields(OptimConfig)}


@dataclasses.dataclass(frozen=True)
class Given:
    """A value for one constructor argument, and where the user set it."""

    name: str
    value: Any
    key: str
    is_default: bool = False
    """Whether nobody set it for this class: left out where it does not fit."""


@dataclasses.dataclass(frozen=True)
class Planned:
    """The keyword arguments of one constructor call, and what was left out."""

    kwargs: dict[str, Any]
    keys: dict[str, str]
    """Argument name -> the key that set it."""
    dropped: tuple[str, ...]
    """Sentences about values that `strict: false` let pass."""


def given_by_config(optim: OptimConfig, problems: Problems) -> list[Given]:
    """List what a checked config gives: its fields, then the further arguments."""
    extra = dict(optim.override_optimizer_config or {})
    given = [
        Given(name, getattr(optim, name), name, getattr(optim, name) == _DEFAULTS[name])
        for name in FIELDS
        if getattr(optim, name) is not None
    ]
    for field in given:
        if field.name in extra:
            value = extra.pop(field.name)
            if not _equal(value, field.value):
                what = (
                    f"{field.name} is {_text(value)} here and {_text(field.value)} in"
                    f" the field {field.name}: keep the field"
                )
                problems.add(what, f"{EXTRA}.{field.name}")
    switches = _switches(optim.implementation)
    given += [Given(name, value, "implementation") for name, value in switches.items()]
    for name, value in extra.items():
        if value == "???":
            continue  # noted where the node was read
        if name in (_FLAGS if optim.implementation == "fastest" else switches):
            what = f"{name} is set here and by implementation: keep one of them"
            problems.add(what, f"{EXTRA}.{name}")
        given.append(Given(name, value, f"{EXTRA}.{name}"))
    return given


def given_by_rule(
    optim: OptimConfig, rule: Mapping[str, Any], problems: Problems, *, same_class: bool
) -> list[Given]:
    """List what a rule gives: its own values, and the node's where it has none.

    Args:
        optim: The checked node.
        rule: The checked rule.
        problems: Of the rule; the node's own values are reported with the node.
        same_class: Whether the rule keeps the node's class, and with it the node's
            further arguments.

    """
    extra = optim.override_optimizer_config if same_class else {}
    items = {**(extra or {}), **_switches(optim.implementation)}
    given = {n: Given(n, v, n, is_default=True) for n, v in items.items()}
    for name in FIELDS:
        value = getattr(optim, name)
        if name in rule:
            given[name] = Given(name, rule[name], name)
        elif f"{name}_mult" in rule:
            value *= rule[f"{name}_mult"]
            given[name] = Given(name, value, f"{name}_mult")
        elif value is not None:
            given[name] = Given(name, value, name, is_default=True)
    for name, value in rule.get(EXTRA, {}).items():
        key = f"{EXTRA}.{name}"
        if name in FIELDS:
            problems.add(f"{name} is a field of the rule itself: write it there", key)
        else:
            given[name] = Given(name, value, key)
    return [item for item in given.values() if item.value != "???"]


def given_by_plain_node(arguments: Mapping[str, Any]) -> list[Given]:
    """List what a plain Hydra node (`_target_: torch.optim.SGD`) gives."""
    return [Given(name, value, name) for name, value in arguments.items()]


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
    return _equal(item.value, signature_of(cls).arguments[item.name].default)


def _fit(
    signature: Signature, item: Given, kwargs: dict[str, Any], problems: Problems
) -> None:
    argument = signature.arguments[item.name]
    length = len(argument.default) if isinstance(argument.default, tuple) else None
    if item.is_default and length is not None and length != _length(item.value):
        return  # the schema's pair of betas, untouched, for a class that wants three
    try:
        # A copy: some classes take things out of a dict that they were given.
        kwargs[item.name] = copy.deepcopy(fit_value(item.value, argument))
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
    if item.name in FIELDS:
        hint = f": leave {item.name} at its default, or set strict=false"
    else:
        hint = nearest(item.name, signature.arguments)
    return f"{cls.__name__} takes no {item.name}{hint} {accepted}"


def _switches(implementation: str | None) -> dict[str, bool]:
    """Translate `implementation` into torch's two flags."""
    if implementation in (None, "fastest"):  # which is chosen for the parameters
        return {}
    if implementation == "for-loop":
        return {"foreach": False, "fused": False}
    return {implementation: True}


def _is_spare_switch(item: Given) -> bool:
    # "for-loop" asks for neither; a class that lacks a flag is on the loop anyway.
    return item.key == "implementation" and item.value is False


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (list, tuple)) else None


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, list):
        first = tuple(first)
    try:
        return bool(first == second or float(first) == float(second))
    except (TypeError, ValueError, OverflowError):
        return False


def _text(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else shown(value)
