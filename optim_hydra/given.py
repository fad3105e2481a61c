"""Read which argument values a node or a rule gives, and where they were set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from optim_hydra.errors import Problems
from optim_hydra.schema import OptimConfig
from optim_hydra.value_checks import shown

__all__ = [
    "EXTRA",
    "FIELDS",
    "Given",
    "are_equal",
    "given_by_config",
    "given_by_plain_node",
    "given_by_rule",
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
    is_plain: bool = False
    """Whether a plain Hydra node gives it, which has neither defaults nor `strict`."""


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
            if not are_equal(value, field.value):
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
    return [Given(n, value, n, is_plain=True) for n, value in arguments.items()]


def _switches(implementation: str | None) -> dict[str, bool]:
    """Translate `implementation` into torch's two flags."""
    if implementation in (None, "fastest"):  # which is chosen for the parameters
        return {}
    if implementation == "for-loop":
        return {"foreach": False, "fused": False}
    return {implementation: True}


def are_equal(first: Any, second: Any) -> bool:
    """Whether two values are one for a config: lists and tuples, numbers and texts."""
    if isinstance(first, list):
        first = tuple(first)
    try:
        return bool(first == second or float(first) == float(second))
    except (TypeError, ValueError, OverflowError):
        return False


def _text(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else shown(value)
