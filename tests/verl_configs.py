"""verl's five optimizer configs with their fields, as its documents list them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from optim_hydra import OptimConfig


def said(optim: OptimConfig) -> dict[str, Any]:
    """Return what differs from a plain OptimConfig."""
    plain = asdict(OptimConfig())
    items = asdict(optim)
    return {
        key: value
        for key, value in items.items()
        if value != plain[key] and key != "layer_decay"
    }


@dataclass
class BaseConfig(Mapping):
    """A dataclass that is a mapping too, whose fields are set once."""

    _target_: str = ""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            msg = f"Field '{name}' is frozen and cannot be modified"
            raise AttributeError(msg)
        super().__setattr__(name, value)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


@dataclass
class OptimizerConfig(BaseConfig):
    lr: float = 1e-3
    lr_warmup_steps_ratio: float = 0.0
    total_training_steps: int = -1
    weight_decay: float = 0.01
    lr_warmup_steps: int | None = -1
    betas: tuple[float, float] = (0.9, 0.999)
    clip_grad: float = 1.0
    grad_clip: float | None = None


@dataclass
class FSDPOptimizerConfig(OptimizerConfig):
    optimizer: str = "AdamW"
    optimizer_impl: str = "torch.optim"
    min_lr_ratio: float | None = None
    warmup_style: str | None = None
    lr_scheduler_type: str = "constant"
    num_cycles: float = 0.5
    override_optimizer_config: dict | None = None
    zero_indexed_step: bool = True


@dataclass
class McoreOptimizerConfig(OptimizerConfig):
    optimizer: str = "adam"
    lr_warmup_init: float = 0.0
    lr_decay_steps: int | None = None
    lr_decay_style: str = "linear"
    min_lr: float = 0.0
    weight_decay_incr_style: str = "constant"
    lr_wsd_decay_style: str = "exponential"
    lr_wsd_decay_steps: int | None = None
    use_checkpoint_opt_param_scheduler: bool = False
    use_precision_aware_optimizer: bool = False
    main_grads_dtype: str = "fp32"
    exp_avg_dtype: str = "fp32"
    exp_avg_sq_dtype: str = "fp32"
    use_layer_wise_distributed_optimizer: bool = False
    use_layer_wise_param_layout: bool | None = None
    muon_momentum: float = 0.95
    muon_nesterov: bool = False
    muon_split_qkv: bool = True
    muon_scale_mode: str = "spectral"
    muon_coefficient_type: str = "quintic"
    muon_num_ns_steps: int = 5
    muon_tp_mode: str = "blockwise"
    muon_fp32_matmul_prec: str = "medium"
    muon_extra_scale_factor: float = 1.0
    muon_scalar_optimizer: str = "adam"
    muon_match_adamw_update_rms: bool = False
    override_optimizer_config: dict | None = None


@dataclass
class VeOmniOptimizerConfig(OptimizerConfig):
    optimizer: str = "adamw"
    lr_min: float = 0.0
    lr_start: float = 0.0
    lr_decay_ratio: float = 1.0
    lr_scheduler_type: str = "constant"
    override_optimizer_config: dict | None = None


@dataclass
class TorchtitanOptimizerConfig(OptimizerConfig):
    name: str = "AdamW"
    eps: float = 1e-8
    decay_type: str = "linear"
    min_lr_factor: float = 0.0


@dataclass
class AutomodelOptimizerConfig(OptimizerConfig):
    optimizer: str = "AdamW"
    optimizer_impl: str = "torch.optim"
    init_lr_ratio: float | None = 0.1
    min_lr_ratio: float | None = 0.01
    lr_scheduler_type: str = "cosine"
    wd_incr_style: str = "constant"
    num_cycles: float = 0.5
    zero_indexed_step: bool = True
    eps: float = 1e-8
    master_weights: bool = False
    store_param_remainders: bool = False
    exp_avg_dtype: str | None = None
    exp_avg_sq_dtype: str | None = None
    master_weight_dtype: str | None = None
    override_optimizer_config: dict | None = None
