"""Own the dataclass of a parameter-group rule, and its checks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optim_hydra.errors import Problems, UnknownKeyError, join_key, nearest
from optim_hydra.foreign_keys import OTHER_NAMES
from optim_hydra.list_checks import Texts
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.value_checks import Count, Flag, Real, Refused, Text, is_open, shown

__all__ = [
    "MATCHERS",
    "NO_DECAY_ROLES",
    "SCHEDULE_KEYS",
    "ParamGroupConfig",
    "check_each",
    "check_rules",
]

NO_DECAY_ROLES = ("bias", "norm", "embedding", "1d")
ROLES = (*NO_DECAY_ROLES, "head", "hidden")


@dataclass(slots=True, kw_only=True)
class ParamGroupConfig:
    """Give some parameters of a node values of their own.

    All matchers that are given must hold, and the first rule that matches a
    parameter has it. What a rule leaves at null it inherits from its node.

    Example:
        >>> from optim_hydra import OptimConfig
        >>> rule = ParamGroupConfig(pattern="*.bias", weight_decay=0.0)
        >>> optim = OptimConfig(param_groups=[rule])
        >>> optim.param_groups
        [{'pattern': '*.bias', 'weight_decay': 0.0}]

    """

    pattern: str | None = None
    """Glob on the whole name, wrappers' segments removed; `*` crosses dots."""
    regex: str | None = None
    """Regular expression that is found somewhere in the name."""
    module_type: str | None = None
    """Name of the class, or of a base, of the module that owns the parameter."""
    role: Any = None
    """bias, norm, embedding, head, hidden or 1d; one or a list of them."""
    ndim: int | None = None
    """Number of dimensions."""
    min_ndim: int | None = None
    """Least number of dimensions."""

    optimizer: str | None = None
    """Class of its own, as in the node; the node's further arguments stay there."""
    optimizer_impl: str | None = None
    """Module that has the class."""
    override_optimizer_config: dict[str, Any] | None = None
    """Further arguments, over those of the node."""
    lr: float | None = None
    """Learning rate, >= 0."""
    lr_mult: float | None = None
    """Multiplies the node's lr, >= 0."""
    weight_decay: float | None = None
    """>= 0; it wins over the node's no_decay."""
    weight_decay_mult: float | None = None
    """Multiplies the node's weight_decay, >= 0."""
    betas: tuple[float, ...] | None = None
    """Each in [0, 1)."""
    eps: float | None = None
    """>= 0."""

    lr_scheduler_type: str | None = None
    """Schedule of its own."""
    override_lr_scheduler_config: dict[str, Any] | None = None
    """As in the node."""
    lr_warmup_steps: int | None = None
    """As in the node; it takes the place of the node's ratio too."""
    lr_warmup_steps_ratio: float | None = None
    """As in the node; it takes the place of the node's steps too."""
    lr_warmup_init_ratio: float | None = None
    """As in the node."""
    min_lr_ratio: float | None = None
    """As in the node."""
    num_cycles: float | None = None
    """As in the node."""
    lr_decay_steps_ratio: float | None = None
    """As in the node."""
    lr_decay_style: str | None = None
    """As in the node."""
    lr_decay_power: float | None = None
    """As in the node."""
    zero_indexed_step: bool | None = None
    """As in the node."""

    freeze: bool = False
    """True: switch requires_grad off and leave the parameters out."""
    expect: int | None = None
    """Least number of parameters that fall under the rule; null means 1."""


MATCHERS = ("pattern", "regex", "module_type", "role", "ndim", "min_ndim")
SCHEDULE_KEYS = (
    "lr_scheduler_type",
    "override_lr_scheduler_config",
    "lr_warmup_steps",
    "lr_warmup_steps_ratio",
    "lr_warmup_init_ratio",
    "min_lr_ratio",
    "num_cycles",
    "lr_decay_steps_ratio",
    "lr_decay_style",
    "lr_decay_power",
    "zero_indexed_step",
)
# What peers call the fields of a rule.
PEERS_NAMES = {
    "decay_mult": "weight_decay_mult",
    "lr_multiplier": "lr_mult",
    "name": "pattern",
    "lr_scale": "lr_mult",
    "optimizer_kwargs": "override_optimizer_config",
    "optimizer_name": "optimizer",
    "opts": "override_optimizer_config",
    "param_str_match": "regex",
    "params": "pattern",
    "wd_mult": "weight_decay_mult",
    "weight_decay_multiplier": "weight_decay_mult",
}
EXAMPLE = "[{pattern: '*.bias', weight_decay: 0.0}]"
_Rule = Callable[[Any], Any]


def _regex(value: Any) -> str:
    text = Text(r"\.bias$")(value)
    try:
        re.compile(text)
    except re.error as error:
        msg = f"{value!r} is not a regular expression: {error}"
        raise Refused(msg) from None
    return text


OWN_CHECKS: dict[str, _Rule] = {
    "pattern": Text("blocks.*"),
    "regex": _regex,
    "module_type": Text("Linear"),
    "role": Texts(ROLES, single=True),
    "ndim": Count(low=0),
    "min_ndim": Count(low=0),
    "lr_mult": Real(),
    "weight_decay_mult": Real(),
    "freeze": Flag(),
    "expect": Count(low=0),
}


def check_rules(
    value: Any, node_checks: Mapping[str, _Rule], key: str, problems: Problems
) -> list[dict[str, Any]]:
    """Return the rules as plain mappings of what each of them says.

    Args:
        value: A list of mappings or `ParamGroupConfig`s.
        node_checks: The checks of the node's fields, which rules share.
        key: Where the list stands.
        problems: Where everything that is wrong is noted.

    """
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        problems.add(f"{shown(value)} is not a list of rules: write {EXAMPLE}", key)
        return []
    if not value:
        return []
    names = [f.name for f in dataclasses.fields(ParamGroupConfig)]
    checks = {name: OWN_CHECKS.get(name) or node_checks[name] for name in names}
    rules: list[dict[str, Any]] = []
    for index, item in enumerate(value):
        at = f"{key}[{index}]"
        if isinstance(item, ParamGroupConfig):
            item = dataclasses.asdict(item)  # noqa: PLW2901 - the same rule as a mapping
        if not isinstance(item, Mapping):
            problems.add(f"{shown(item)} is not a rule: write {EXAMPLE}", at)
            rules.append({})
            continue
        said = {str(k): v for k, v in item.items() if v is not None}
        rules.append(_check_rule(said, checks, at, problems))
    return rules


def _check_rule(
    said: dict[str, Any], checks: Mapping[str, _Rule], at: str, problems: Problems
) -> dict[str, Any]:
    rule = check_each(said, checks, at, problems)
    if not rule.get("freeze", True):
        del rule["freeze"]
    if not any(name in said for name in MATCHERS):
        what = f"the rule names no parameters: give one of {', '.join(MATCHERS)}"
        problems.add(what, at)
    for name in ("lr", "weight_decay"):
        if name in rule and f"{name}_mult" in rule:
            what = f"{name} and {name}_mult exclude each other: keep one (null takes"
            what += " the other away)"
            problems.add(what, join_key(at, f"{name}_mult"))
    values = rule.keys() - {*MATCHERS, "freeze", "expect"}
    if rule.get("freeze") is True and values:
        what = f"frozen parameters take no {', '.join(sorted(values))}: keep one"
        problems.add(what, join_key(at, "freeze"))
    return rule


def check_each(
    said: Mapping[str, Any], checks: Mapping[str, _Rule], at: str, problems: Problems
) -> dict[str, Any]:
    """Check each value by its own rule; wrong ones are left out."""
    result = {}
    for name, value in said.items():
        if name not in checks:
            what = f"no field {name}{_instead(name, checks)}"
            problems.add(what, join_key(at, name), UnknownKeyError)
        elif is_open(value):
            result[name] = value
        else:
            try:
                result[name] = checks[name](value)
            except Refused as refused:
                problems.add(str(refused), join_key(at, name) + refused.index)
    return result


_OF_THE_NODE = {
    *("clip_grad", "implementation", "compile_step", "step_in_backward"),
    *("total_training_steps", "strict"),
}


def _instead(name: str, checks: Mapping[str, _Rule]) -> str:
    if name in _OF_THE_NODE:
        return " in a rule: it holds for the whole node"
    renamed = RENAMED_KEYS.get(name)
    other = renamed.new if renamed else {**OTHER_NAMES, **PEERS_NAMES}.get(name)
    if other in checks:
        return f": write {other}"
    near = nearest(name, checks)
    return near or ": constructor arguments go into override_optimizer_config"
