"""Own the table of other libraries' keys: what to write here instead, and how.

In a node they are refused and never renamed in silence: many mean something else (an
absolute rate is not a ratio) or have no equal, and none was ever a key of ours.
`conversion` reads this table to convert a whole node of such a library.
"""

from __future__ import annotations

from optim_hydra.foreign_key import ForeignKey, name, no_equal, rate

__all__ = ["FOREIGN_KEYS", "FOREIGN_ROWS", "OTHER_NAMES", "VERL_CLASSES"]

EXTRA = "override_optimizer_config"
_FP32 = ("fp32", "float32", "32", None)
_OFF = (False, None)
_BETAS = "betas: [beta1, beta2]"
_WSD_SHARE = "lr_decay_steps_ratio, a share of total_training_steps"

_MEGATRON = (
    rate("min_lr", "Megatron", "min_lr_ratio"),
    rate("lr_warmup_init", "Megatron", "lr_warmup_init_ratio"),
    ForeignKey("lr_decay_steps", "Megatron", "total_training_steps"),
    ForeignKey("lr_decay_iters", "Megatron", "total_training_steps"),
    name("lr_warmup_iters", "Megatron", "lr_warmup_steps"),
    name("lr_warmup_fraction", "Megatron", "lr_warmup_steps_ratio"),
    ForeignKey("lr_wsd_decay_style", "Megatron", "lr_decay_style"),
    ForeignKey("lr_wsd_decay_steps", "Megatron", _WSD_SHARE),
    ForeignKey("lr_wsd_decay_iters", "Megatron", _WSD_SHARE),
    ForeignKey("adam_beta1", "Megatron", _BETAS),
    ForeignKey("adam_beta2", "Megatron", _BETAS),
    name("adam_eps", "Megatron", "eps"),
    ForeignKey("sgd_momentum", "Megatron", f"{EXTRA}.momentum"),
    *(
        ForeignKey(key, "Megatron", f"{EXTRA}.{instead}", by_hand=True)
        for key, instead in {
            "muon_momentum": "momentum",
            "muon_nesterov": "nesterov",
            "muon_num_ns_steps": "ns_steps",
            "muon_coefficient_type": "ns_coefficients, three numbers",
            "muon_scale_mode": "adjust_lr_fn=match_rms_adamw or original",
            "muon_match_adamw_update_rms": "adjust_lr_fn=match_rms_adamw",
        }.items()
    ),
    ForeignKey(
        "use_checkpoint_opt_param_scheduler", "Megatron", "on_resume=checkpoint"
    ),
    ForeignKey("override_opt_param_scheduler", "Megatron", "on_resume=config"),
    *no_equal(
        "Megatron",
        weight_decay_incr_style=("constant",),
        start_weight_decay=(None,),
        end_weight_decay=(None,),
        lr_decay_samples=(None,),
        lr_warmup_samples=(0, None),
        lr_wsd_decay_samples=(None,),
        decoupled_lr=(None,),
        decoupled_min_lr=(None,),
        use_precision_aware_optimizer=_OFF,
        use_distributed_optimizer=_OFF,
        use_layer_wise_distributed_optimizer=_OFF,
        use_layer_wise_param_layout=_OFF,
        main_grads_dtype=_FP32,
        main_params_dtype=_FP32,
        exp_avg_dtype=_FP32,
        exp_avg_sq_dtype=_FP32,
        muon_split_qkv=(),
        muon_tp_mode=(),
        muon_fp32_matmul_prec=(),
        muon_extra_scale_factor=(),
        muon_scalar_optimizer=(),
    ),
)

_VEOMNI = (
    rate("lr_min", "VeOmni", "min_lr_ratio"),
    rate("lr_start", "VeOmni", "lr_warmup_init_ratio"),
    ForeignKey(
        "lr_decay_ratio",
        "VeOmni",
        "lr_scheduler_type=wsd and lr_decay_steps_ratio",
        neutral=(1.0,),
        by_hand=True,
    ),
    name("lr_warmup_ratio", "VeOmni", "lr_warmup_steps_ratio"),
    ForeignKey("optimizer_type", "VeOmni", "optimizer"),
    name("max_grad_norm", "VeOmni", "clip_grad", common=True),
)

_TORCHTITAN = (
    name("min_lr_factor", "torchtitan", "min_lr_ratio"),
    ForeignKey(
        "decay_type", "torchtitan", "lr_scheduler_type or, for wsd, lr_decay_style"
    ),
    ForeignKey(
        "decay_ratio", "torchtitan", "lr_scheduler_type=wsd and lr_decay_steps_ratio"
    ),
    name("early_step_in_backward", "torchtitan", "step_in_backward"),
    *no_equal("torchtitan", moment_dtype=("parameter",)),
    name("name", "torchtitan", "optimizer", common=True),
    ForeignKey("beta1", "torchtitan", _BETAS, common=True),
    ForeignKey("beta2", "torchtitan", _BETAS, common=True),
    name("warmup_steps", "torchtitan", "lr_warmup_steps", common=True),
    ForeignKey("total_steps", "torchtitan", "total_training_steps", common=True),
    name("max_norm", "torchtitan", "clip_grad", common=True),
)

_AUTOMODEL = (
    name("init_lr_ratio", "NeMo Automodel", "lr_warmup_init_ratio"),
    ForeignKey(
        "master_weights",
        "NeMo Automodel",
        f"{EXTRA}.master_weights, if the class takes it",
        neutral=_OFF,
    ),
    ForeignKey(
        "store_param_remainders",
        "NeMo Automodel",
        f"{EXTRA}.store_param_remainders, if the class takes it",
        neutral=_OFF,
    ),
    *no_equal(
        "NeMo Automodel",
        wd_incr_style=("constant",),
        exp_avg_dtype=(None,),
        exp_avg_sq_dtype=(None,),
        master_weight_dtype=(None,),
    ),
)

_TRANSFORMERS = (
    name("learning_rate", "transformers", "lr", common=True),
    ForeignKey("optim", "transformers", "optimizer_impl and optimizer", common=True),
    ForeignKey("optim_args", "transformers", EXTRA, common=True),
    ForeignKey("adam_beta1", "transformers", _BETAS, common=True),
    ForeignKey("adam_beta2", "transformers", _BETAS, common=True),
    name("adam_epsilon", "transformers", "eps", common=True),
    ForeignKey("max_grad_norm", "transformers", "clip_grad", common=True),
    ForeignKey("warmup_ratio", "transformers", "lr_warmup_steps_ratio", common=True),
    ForeignKey("warmup_steps", "transformers", "lr_warmup_steps", common=True),
    name("max_steps", "transformers", "total_training_steps", common=True),
    ForeignKey(
        "lr_scheduler_kwargs",
        "transformers",
        "min_lr_ratio, num_cycles, lr_decay_steps_ratio and lr_decay_style",
        common=True,
    ),
    ForeignKey(
        "optim_target_modules", "transformers", "", neutral=(None,), common=True
    ),
)

# Lightning, MMEngine, DeepSpeed and others: what a field is called elsewhere.
_OTHERS = tuple(
    name(key, "others", instead, common=True)
    for key, instead in {
        "decay": "weight_decay",
        "gradient_clip_val": "clip_grad",
        "gradient_clipping": "clip_grad",
        "num_training_steps": "total_training_steps",
        "num_warmup_steps": "lr_warmup_steps",
        "schedule": "lr_scheduler_type",
        "scheduler": "lr_scheduler_type",
        "type": "optimizer",
        "warmup": "lr_warmup_steps",
        "wd": "weight_decay",
    }.items()
)

FOREIGN_ROWS: tuple[ForeignKey, ...] = (
    *_MEGATRON,
    *_VEOMNI,
    *_TORCHTITAN,
    *_AUTOMODEL,
    *_TRANSFORMERS,
    *_OTHERS,
)

# Where two libraries share a name, the first row gives the advice.
FOREIGN_KEYS: dict[str, ForeignKey] = {
    row.key: row for row in reversed(FOREIGN_ROWS) if not row.common
}

# Names too common to refuse in a file, where the mapping may be somebody else's.
OTHER_NAMES: dict[str, str] = {
    row.key: row.instead
    for row in reversed(FOREIGN_ROWS)
    if row.common and row.instead and row.key not in FOREIGN_KEYS
}

# verl's config classes, each with the kind of node that it describes.
VERL_CLASSES: dict[str, str] = {
    "FSDPOptimizerConfig": "verl.fsdp",
    "McoreOptimizerConfig": "verl.megatron",
    "VeOmniOptimizerConfig": "verl.veomni",
    "TorchtitanOptimizerConfig": "verl.torchtitan",
    "AutomodelOptimizerConfig": "verl.automodel",
}
