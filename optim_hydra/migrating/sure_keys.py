"""Tell which key of ours a migrated file surely has, so that overrides find it."""

from __future__ import annotations

from optim_hydra.foreign_keys import FOREIGN_ROWS
from optim_hydra.renamed_keys import RENAMED_KEYS

__all__ = ["ALWAYS", "is_always"]

# What becomes one of our keys by a rule of its own, whatever its value.
ALWAYS = {
    "adam_beta1": "betas",
    "adam_beta2": "betas",
    "beta1": "betas",
    "beta2": "betas",
    "decay_type": "lr_scheduler_type",
    "lr_decay_iters": "total_training_steps",
    "lr_decay_steps": "total_training_steps",
    "lr_decay_style": "lr_scheduler_type",
    "max_grad_norm": "clip_grad",
    "optim": "optimizer",
    "optimizer_type": "optimizer",
    "override_opt_param_scheduler": "on_resume",
    "total_steps": "total_training_steps",
    "use_checkpoint_opt_param_scheduler": "on_resume",
    **{key.old: key.new for key in RENAMED_KEYS.values()},
    **{
        row.key: row.instead
        for row in FOREIGN_ROWS
        if row.renames or row.absolute_rate
        if row.key != "warmup_steps"  # of transformers, where it may be a share
    },
}


def is_always(old: str, new: str) -> bool:
    """Whether a migrated file has the new key wherever it had the old one.

    Then an override needs no `+` for it.
    """
    return ALWAYS.get(old, old) == new
