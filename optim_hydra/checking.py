"""Turn a node's items into a checked config: migration, fields, schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from optim_hydra.errors import Problem, Problems, UnknownKeyError
from optim_hydra.migration import rename_keys
from optim_hydra.node import NODE_KEYS, Node
from optim_hydra.rename_notices import written_as
from optim_hydra.schedule_plan import check_rule_schedule, check_schedule
from optim_hydra.scheduler_classes import ARGUMENTS
from optim_hydra.schema import OptimConfig, check_fields, config_of
from optim_hydra.tree import TARGET_REFUSED, has_target, is_our_target
from optim_hydra.value_checks import is_open

__all__ = ["read_config"]

EXTRA = "override_optimizer_config"
_OPEN_ENDED = (EXTRA, ARGUMENTS)


def read_config(
    node: Node, problems: Problems, *, allow_open: bool = False
) -> OptimConfig:
    """Turn a node's items into a checked config; wrong ones keep their defaults.

    Args:
        node: What was read.
        problems: Where everything that is wrong is noted.
        allow_open: Leave values that nobody gave yet (`???`) to a later time.

    """
    items, renamed = rename_keys(node.items, node.at)
    problems.found += [*renamed, *node.unresolved]
    _check_library_keys(items, problems)
    checked = check_fields(items, problems)
    for key in [key for key, value in checked.items() if is_open(value)]:
        value = checked.pop(key)
        if not (allow_open and value == "???"):
            problems.add(f"no value is given ({value}): set {key}", key)
    optim = config_of(checked)
    _check_step(optim, problems)
    _check_layer_decay(optim, problems, allow_open=allow_open)
    for at, mapping in _nested(optim):
        _check_mapping(at, mapping, problems, allow_open=allow_open)
    if "lr_scheduler_type" in checked or "lr_scheduler_type" not in items:
        check_schedule(optim, problems)
        for number, rule in enumerate(optim.param_groups):
            check_rule_schedule(optim, rule, number, problems)
    problems.found = [
        _as_written(problem, items, node.at) for problem in problems.found
    ]
    return optim


def _check_library_keys(items: dict[str, Any], problems: Problems) -> None:
    """Take the keys out that the library sets, and note where they were changed."""
    target = str(items.pop("_target_", "") or "")
    if target and not is_our_target(target):
        what = (
            f"_target_ is set by the library, not to {target}: choose the class by"
            " optimizer_impl and optimizer"
        )
        problems.add(what, "_target_")
    if items.get("_recursive_", False) is not False:
        what = "_recursive_ is set by the library: remove it"
        problems.add(what, "_recursive_")
    for key in NODE_KEYS:
        items.pop(key, None)


def _check_step(optim: OptimConfig, problems: Problems) -> None:
    """Note what can't be had together with updates in backward."""
    if optim.step_in_backward and optim.clip_grad is not None:
        what = "clip_grad takes the norm of all gradients, and step_in_backward frees"
        what += " each as soon as it is there: set clip_grad=null, or"
        problems.add(f"{what} step_in_backward=false", "clip_grad")
    if optim.step_in_backward and optim.compile_step:
        what = "compile_step compiles one update of all parameters, and"
        what += " step_in_backward makes one for each: keep one of them"
        problems.add(what, "compile_step")


def _check_layer_decay(
    optim: OptimConfig, problems: Problems, *, allow_open: bool
) -> None:
    """Drop layer decay without a factor; note one that nobody gave."""
    factor: Any = None if optim.layer_decay is None else optim.layer_decay.factor
    if is_open(factor) and not (allow_open and factor == "???"):
        problems.add(f"no value is given ({factor}): set factor", "layer_decay.factor")
    if factor is None or is_open(factor):
        optim.layer_decay = None


def _check_mapping(
    at: str, mapping: dict[str, Any], problems: Problems, *, allow_open: bool
) -> None:
    """Note targets and values that nobody gave; those of rules are taken out."""
    for name, value in list(mapping.items()):
        key = f"{at}.{name}"
        if at.endswith(_OPEN_ENDED) and has_target({name: value}):
            problems.add(TARGET_REFUSED, key, UnknownKeyError)
        elif is_open(value):
            if not (allow_open and value == "???"):
                problems.add(f"no value is given ({value}): set {name}", key)
            if not at.endswith(_OPEN_ENDED):
                del mapping[name]


def _nested(optim: OptimConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the mappings inside a config: further arguments, and the rules."""
    yield EXTRA, optim.override_optimizer_config or {}
    yield ARGUMENTS, optim.override_lr_scheduler_config or {}
    for number, rule in enumerate(optim.param_groups):
        yield f"param_groups[{number}]", rule
        for key in _OPEN_ENDED:
            if isinstance(rule.get(key), dict):
                yield f"param_groups[{number}].{key}", rule[key]


def _as_written(problem: Problem, items: dict[str, Any], at: str) -> Problem:
    """Add the old key to a problem with a value that was written under it."""
    name = problem.key.removeprefix(f"{at}." if at else "").partition("[")[0]
    old = written_as(at, name, items.get(name))
    if not old:
        return problem
    return replace(problem, what=f"{problem.what} (written as {old})")
