"""Own the check of each field of an optimizer node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optim_hydra.errors import nearest
from optim_hydra.foreign_keys import OTHER_NAMES
from optim_hydra.list_checks import Items, Reals, Texts
from optim_hydra.schema_groups import NO_DECAY_ROLES
from optim_hydra.value_checks import Choice, Count, Flag, Real, Text

__all__ = ["CHECKS", "instead_of"]

_RATIO = Real(high=1.0)
_STEPS_HINT = "a number of steps goes into lr_warmup_steps"

CHECKS: dict[str, Callable[[Any], Any]] = {
    "_target_": str,
    "_recursive_": Flag(),
    "_full_key_": str,
    "optimizer": Text(),
    "optimizer_impl": Text(),
    "override_optimizer_config": Items(),
    "lr": Real(null_hint="write a number, or ??? for one that must be given"),
    "weight_decay": Real(null_hint="write 0.0 to switch decay off"),
    "betas": Reals(Real(high=1.0, open_high=True)),
    "eps": Real(null=True),
    "clip_grad": Real(open_low=True, null=True, low_hint="null switches clipping off"),
    "implementation": Choice(("fastest", "foreach", "fused", "for-loop"), null=True),
    "compile_step": Flag(),
    "step_in_backward": Flag(),
    "lr_scheduler_type": Text(),
    "override_lr_scheduler_config": Items(),
    "lr_warmup_steps": Count(low=0, null=True, also=(-1,)),
    "lr_warmup_steps_ratio": Real(high=1.0, hint=_STEPS_HINT),
    "lr_warmup_init_ratio": _RATIO,
    "total_training_steps": Count(low=1, also=(-1,)),
    "min_lr_ratio": Real(high=1.0, null=True, hint="it is a share of lr, not a rate"),
    "num_cycles": Real(open_low=True, high=1e6),
    "lr_decay_steps_ratio": _RATIO,
    "lr_decay_style": Choice(
        ("linear", "cosine", "sqrt", "exponential"),
        hint="it is the decay part of wsd; the schedule itself is lr_scheduler_type",
    ),
    "lr_decay_power": Real(open_low=True, high=1e6),
    "zero_indexed_step": Flag(),
    "param_groups": list,  # item by item, in check_fields
    "no_decay": Texts(NO_DECAY_ROLES),
    "layer_decay": dict,  # as param_groups
    "on_resume": Choice(("config", "checkpoint", "strict")),
    "strict": Flag(),
}


def instead_of(name: str) -> str:
    """Say what to write in place of a key that is no field."""
    if name == "optim":
        return ": this is the parent of the node, give its .optim"
    if name in OTHER_NAMES:
        return f": write {OTHER_NAMES[name]}"
    near = nearest(name, [key for key in CHECKS if not key.startswith("_")])
    return near or ": constructor arguments go into override_optimizer_config"
