"""Turn a node's items into a checked config: migration, fields, schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optim_hydra.errors import Problem, Problems
from optim_hydra.migration import rename_keys
from optim_hydra.node import HYDRA_KEYS, Node
from optim_hydra.rename_notices import written_as
from optim_hydra.schedule_plan import check_schedule
from optim_hydra.schema import OptimConfig, check_fields, is_open
from optim_hydra.tree import OUR_TARGETS

__all__ = ["read_config"]


def read_config(node: Node, problems: Problems) -> OptimConfig:
    """Turn a node's items into a checked config; wrong ones keep their defaults."""
    items, renamed = rename_keys(node.items, node.at)
    problems.found += renamed
    target = items.pop("_target_", "")
    if target and not str(target).startswith(OUR_TARGETS):
        what = (
            f"_target_ is set by the library, not to {target}: choose the class by"
            " optimizer_impl and optimizer"
        )
        problems.add(what, "_target_")
    for key in HYDRA_KEYS:
        items.pop(key, None)
    checked = check_fields(items, problems)
    for key in [key for key, value in checked.items() if is_open(value)]:
        what = f"no value is given ({checked.pop(key)}): set {key}"
        problems.add(what, key)
    optim = OptimConfig(**checked)
    check_schedule(optim, problems)
    problems.found = [
        _as_written(problem, items, node.at) for problem in problems.found
    ]
    return optim


def _as_written(problem: Problem, items: dict[str, Any], at: str) -> Problem:
    """Add the old key to a problem with a value that was written under it."""
    name = problem.key.removeprefix(f"{at}." if at else "").partition("[")[0]
    old = written_as(at, name, items.get(name))
    if not old:
        return problem
    return replace(problem, what=f"{problem.what} (written as {old})")
