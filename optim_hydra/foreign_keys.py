"""Own the table of other libraries' keys: what to write here instead.

They are refused and never renamed: many mean something else (an absolute rate is not
a ratio) or have no equal, and none was ever a key of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FOREIGN_KEYS", "OTHER_NAMES", "ForeignKey"]


@dataclass(frozen=True)
class ForeignKey:
    """A key of another library, and our key (or none) for the same wish."""

    key: str
    owner: str
    instead: str
    absolute_rate: bool = False

    def advice(self, node: Mapping[str, Any]) -> str:
        """Say what to write instead, with the converted value where it is known."""
        if not self.instead:
            return (
                f"{self.key} is a key of {self.owner} and has no equal here: remove it"
            )
        text = f"{self.key} is a key of {self.owner}: write {self.instead}"
        if not self.absolute_rate:
            return text
        ratio = _ratio(node.get(self.key), node.get("lr"))
        share = f" ({ratio} here)" if ratio else ""
        return f"{text}, a share of lr{share}, where {self.key} is an absolute rate"


def _ratio(rate: Any, lr: Any) -> str:
    try:
        return f"{float(rate) / float(lr):.6g}"
    except (TypeError, ValueError, ZeroDivisionError):
        return ""


_MEGATRON_ONLY = (
    "weight_decay_incr_style",
    "use_checkpoint_opt_param_scheduler",
    "use_precision_aware_optimizer",
    "use_distributed_optimizer",
    "use_layer_wise_distributed_optimizer",
    "use_layer_wise_param_layout",
    "main_grads_dtype",
    "main_params_dtype",
    "exp_avg_dtype",
    "exp_avg_sq_dtype",
    "muon_split_qkv",
    "muon_tp_mode",
    "muon_fp32_matmul_prec",
    "muon_extra_scale_factor",
    "muon_scalar_optimizer",
)

_KEYS = (
    ForeignKey("min_lr", "Megatron", "min_lr_ratio", absolute_rate=True),
    ForeignKey(
        "lr_warmup_init", "Megatron", "lr_warmup_init_ratio", absolute_rate=True
    ),
    ForeignKey("lr_decay_steps", "Megatron", "total_training_steps"),
    ForeignKey("lr_wsd_decay_style", "Megatron", "lr_decay_style"),
    ForeignKey(
        "lr_wsd_decay_steps",
        "Megatron",
        "lr_decay_steps_ratio, a share of total_training_steps",
    ),
    ForeignKey("adam_beta1", "Megatron", "betas: [beta1, beta2]"),
    ForeignKey("adam_beta2", "Megatron", "betas: [beta1, beta2]"),
    ForeignKey("adam_eps", "Megatron", "eps"),
    ForeignKey("muon_momentum", "Megatron", "override_optimizer_config.momentum"),
    ForeignKey("muon_nesterov", "Megatron", "override_optimizer_config.nesterov"),
    ForeignKey("muon_num_ns_steps", "Megatron", "override_optimizer_config.ns_steps"),
    ForeignKey(
        "muon_coefficient_type",
        "Megatron",
        "override_optimizer_config.ns_coefficients, three numbers",
    ),
    ForeignKey(
        "muon_scale_mode",
        "Megatron",
        "override_optimizer_config.adjust_lr_fn=match_rms_adamw or original",
    ),
    ForeignKey(
        "muon_match_adamw_update_rms",
        "Megatron",
        "override_optimizer_config.adjust_lr_fn=match_rms_adamw",
    ),
    *(ForeignKey(key, "Megatron", "") for key in _MEGATRON_ONLY),
    ForeignKey("lr_min", "VeOmni", "min_lr_ratio", absolute_rate=True),
    ForeignKey("lr_start", "VeOmni", "lr_warmup_init_ratio", absolute_rate=True),
    ForeignKey(
        "lr_decay_ratio",
        "VeOmni",
        "lr_scheduler_type=wsd and lr_decay_steps_ratio",
    ),
    ForeignKey("min_lr_factor", "torchtitan", "min_lr_ratio"),
    ForeignKey(
        "decay_type", "torchtitan", "lr_scheduler_type or, for wsd, lr_decay_style"
    ),
    ForeignKey("init_lr_ratio", "NeMo Automodel", "lr_warmup_init_ratio"),
    ForeignKey(
        "master_weights",
        "NeMo Automodel",
        "override_optimizer_config.master_weights, if the class takes it",
    ),
    ForeignKey(
        "store_param_remainders",
        "NeMo Automodel",
        "override_optimizer_config.store_param_remainders, if the class takes it",
    ),
)

FOREIGN_KEYS: dict[str, ForeignKey] = {key.key: key for key in _KEYS}

# What a field is called elsewhere (transformers, Lightning, MMEngine): names too common
# to refuse in a file, where the mapping may be somebody else's.
OTHER_NAMES: dict[str, str] = {
    "beta1": "betas: [beta1, beta2]",
    "beta2": "betas: [beta1, beta2]",
    "decay": "weight_decay",
    "gradient_clip_val": "clip_grad",
    "gradient_clipping": "clip_grad",
    "learning_rate": "lr",
    "max_grad_norm": "clip_grad",
    "max_norm": "clip_grad",
    "max_steps": "total_training_steps",
    "name": "optimizer",
    "num_training_steps": "total_training_steps",
    "num_warmup_steps": "lr_warmup_steps",
    "schedule": "lr_scheduler_type",
    "scheduler": "lr_scheduler_type",
    "total_steps": "total_training_steps",
    "type": "optimizer",
    "warmup": "lr_warmup_steps",
    "warmup_ratio": "lr_warmup_steps_ratio",
    "warmup_steps": "lr_warmup_steps",
    "wd": "weight_decay",
}
