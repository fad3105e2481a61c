"""Turn a node's items into a checked config: migration, fields, schedule."""

from __future__ import annotations

from optim_hydra.errors import Problems
from optim_hydra.migration import rename_keys
from optim_hydra.node import HYDRA_KEYS, Node
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
    return optim
