"""Own `convert_config`: any config of an optimizer becomes an `OptimConfig`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optim_hydra.checking import read_config
from optim_hydra.dialects import SOURCES
from optim_hydra.errors import Problems, WrongObjectError, nearest
from optim_hydra.migration import rename_keys
from optim_hydra.node import read_as, read_node
from optim_hydra.schema import OptimConfig
from optim_hydra.value_checks import is_open

__all__ = ["convert_config"]


def convert_config(config: Any, source: str = "") -> OptimConfig:
    """Read an optimizer config of another library, or a stored one of ours.

    Keys and values become ours with the same meaning: verl's absolute rates become
    shares of lr, `decay_type` a schedule, defaults that differ from ours are written
    out. What has no equal is refused by name. `OptimConfig.to_dict` is the way back.

    Args:
        config: A dict (as YAML or JSON has it), a DictConfig or a dataclass instance,
            such as verl's FSDPOptimizerConfig.
        source: `verl` (any of its five groups: told by the class, `_target_` or keys),
            `torchtitan`, `transformers` (TrainingArguments' names), `megatron` or
            `veomni`. Without it: ours, of this or an older version, or verl's own
            classes.

    Raises:
        ConfigError: With everything that has no equal, and every wrong value.
        WrongObjectError: The source is not known, or it is no config.

    Warns:
        FutureWarning: For each renamed key of ours.

    Example:
        >>> megatron = {"lr": 1e-5, "min_lr": 1e-6, "lr_decay_style": "cosine"}
        >>> optim = convert_config(megatron, "verl")
        >>> optim.lr_scheduler_type, optim.min_lr_ratio, optim.clip_grad
        ('cosine', 0.1, 1.0)

    """
    if source and source not in SOURCES:
        near = nearest(source, SOURCES) or f": there are {', '.join(SOURCES)}"
        msg = f"no source {source!r}{near}"
        raise WrongObjectError(msg)
    node = read_as(config, source) if source else read_node(config)
    items, renamed = rename_keys(node.items, node.at)
    problems = Problems(node.at, [*renamed, *node.unresolved])
    known = {key: value for key, value in items.items() if not is_open(value)}
    # Checks the schedule too; what is open (`???`, `${...}`) is left to Hydra.
    read_config(replace(node, items=known, unresolved=()), problems)
    problems.raise_if_any()
    return OptimConfig(**{k: v for k, v in items.items() if k[0] != "_"})
