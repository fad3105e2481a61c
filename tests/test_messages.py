"""Wrong input: the whole sentence that the user reads."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, NamedTuple

import pytest
from torch import nn

from optim_hydra import ConfigError, build_optimizer
from optim_hydra.errors import MigrationError, TargetError, UnknownKeyError

TORCH = f" (torch {version('torch')})"


class Row(NamedTuple):
    """One wrong node, mounted at actor.optim, and what is said about it."""

    name: str
    node: dict[str, Any]
    error: type[ConfigError]
    message: str


ROWS = [
    Row(
        "lr is text",
        {"lr": "abc"},
        ConfigError,
        ("'abc' is not a float @ actor.optim.lr"),
    ),
    Row(
        "lr is null",
        {"lr": None},
        ConfigError,
        (
            "null is not allowed where a float is due: write a number, or ??? for"
            " one that must be given @ actor.optim.lr"
        ),
    ),
    Row(
        "lr is negative",
        {"lr": -1},
        ConfigError,
        ("-1 is not a finite float >= 0 @ actor.optim.lr"),
    ),
    Row(
        "lr is infinite",
        {"lr": float("inf")},
        ConfigError,
        ("inf is not a finite float >= 0 @ actor.optim.lr"),
    ),
    Row(
        "lr is nan",
        {"lr": "nan"},
        ConfigError,
        ("'nan' is not a finite float >= 0 @ actor.optim.lr"),
    ),
    Row(
        "lr is a bool",
        {"lr": True},
        ConfigError,
        ("True is not a float @ actor.optim.lr"),
    ),
    Row(
        "lr is a list",
        {"lr": [0.001]},
        ConfigError,
        ("[0.001] is not a float @ actor.optim.lr"),
    ),
    Row(
        "weight_decay is null",
        {"weight_decay": None},
        ConfigError,
        (
            "null is not allowed where a float is due: write 0.0 to switch decay"
            " off @ actor.optim.weight_decay"
        ),
    ),
    Row(
        "betas in tuple notation",
        {"betas": "(0.9, 0.95)"},
        ConfigError,
        (
            "'(0.9, 0.95)' is not a list of floats: write [0.9, 0.999] @"
            " actor.optim.betas"
        ),
    ),
    Row(
        "one beta",
        {"betas": [0.9]},
        ConfigError,
        ("[0.9] is too short: write [0.9, 0.999] @ actor.optim.betas"),
    ),
    Row(
        "three betas for AdamW",
        {"betas": [0.9, 0.95, 0.99]},
        ConfigError,
        (
            "betas has 3 of the 2 values that the class wants, such as [0.9, 0.999]"
            " @ actor.optim.betas"
        ),
    ),
    Row(
        "a beta of one",
        {"betas": [0.9, 1.0]},
        ConfigError,
        ("1.0 is not a float in [0, 1) @ actor.optim.betas[1]"),
    ),
    Row(
        "a beta that is text",
        {"betas": [0.9, "high"]},
        ConfigError,
        ("'high' is not a float @ actor.optim.betas[1]"),
    ),
    Row(
        "a beta that is null",
        {"betas": [0.9, None]},
        ConfigError,
        ("null is not allowed where a float is due @ actor.optim.betas[1]"),
    ),
    Row(
        "eps is negative",
        {"eps": -1e-08},
        ConfigError,
        ("-1e-08 is not a finite float >= 0 @ actor.optim.eps"),
    ),
    Row(
        "clip_grad is zero",
        {"clip_grad": 0},
        ConfigError,
        (
            "0 is not a finite float > 0: null switches clipping off"
            " @ actor.optim.clip_grad"
        ),
    ),
    Row(
        "clip_grad is nan",
        {"clip_grad": float("nan")},
        ConfigError,
        ("nan is not a finite float > 0 @ actor.optim.clip_grad"),
    ),
    Row(
        "implementation is unknown",
        {"implementation": "fsued"},
        ConfigError,
        (
            "'fsued' is not one of fastest, foreach, fused, for-loop"
            " @ actor.optim.implementation"
        ),
    ),
    Row(
        "strict is text",
        {"strict": "no"},
        ConfigError,
        ("'no' is not a bool: write true or false @ actor.optim.strict"),
    ),
    Row(
        "optimizer is empty",
        {"optimizer": ""},
        ConfigError,
        ("'' is not a name: write one such as AdamW @ actor.optim.optimizer"),
    ),
    Row(
        "override is a list",
        {"override_optimizer_config": [1]},
        ConfigError,
        (
            "[1] is not a mapping: write {name: value} @"
            " actor.optim.override_optimizer_config"
        ),
    ),
    Row(
        "warmup steps not whole",
        {"lr_warmup_steps": 10.5},
        ConfigError,
        (
            "10.5 is not an int: write a whole number such as 1000 @"
            " actor.optim.lr_warmup_steps"
        ),
    ),
    Row(
        "warmup steps a bool",
        {"lr_warmup_steps": True},
        ConfigError,
        (
            "True is not an int: write a whole number such as 1000 @"
            " actor.optim.lr_warmup_steps"
        ),
    ),
    Row(
        "warmup steps below -1",
        {"lr_warmup_steps": -2},
        ConfigError,
        ("-2 is not -1 or an int >= 0 @ actor.optim.lr_warmup_steps"),
    ),
    Row(
        "total of zero",
        {"total_training_steps": 0},
        ConfigError,
        ("0 is not -1 or an int >= 1 @ actor.optim.total_training_steps"),
    ),
    Row(
        "ratio that is a step count",
        {"lr_warmup_steps_ratio": 10},
        ConfigError,
        (
            "10 is not a float in [0, 1]: a number of steps goes into"
            " lr_warmup_steps @ actor.optim.lr_warmup_steps_ratio"
        ),
    ),
    Row(
        "ratio below zero",
        {"lr_warmup_steps_ratio": -0.1},
        ConfigError,
        ("-0.1 is not a float in [0, 1] @ actor.optim.lr_warmup_steps_ratio"),
    ),
    Row(
        "floor above one",
        {"min_lr_ratio": 1.5},
        ConfigError,
        (
            "1.5 is not a float in [0, 1]: it is a share of lr, not a rate @"
            " actor.optim.min_lr_ratio"
        ),
    ),
    Row(
        "decay style of Megatron",
        {"lr_decay_style": "constant"},
        ConfigError,
        (
            "'constant' is not one of linear, cosine, sqrt, exponential; it is the"
            " decay part of wsd; the schedule itself is lr_scheduler_type @"
            " actor.optim.lr_decay_style"
        ),
    ),
    Row(
        "a value left open",
        {"lr": "???"},
        ConfigError,
        ("no value is given (???): set lr @ actor.optim.lr"),
    ),
    Row(
        "misspelt field",
        {"weight_deacy": 0.1},
        UnknownKeyError,
        (
            "no field weight_deacy: did you mean weight_decay? @"
            " actor.optim.weight_deacy"
        ),
    ),
    Row(
        "constructor argument as field",
        {"momentum": 0.9},
        UnknownKeyError,
        (
            "no field momentum: constructor arguments go into"
            " override_optimizer_config @ actor.optim.momentum"
        ),
    ),
    Row(
        "the parent of the node",
        {"optim": {"lr": 0.001}},
        UnknownKeyError,
        (
            "no field optim: this is the parent of the node, give its .optim @"
            " actor.optim.optim"
        ),
    ),
    Row(
        "absolute minimum rate",
        {"min_lr": 1e-05, "lr": 0.001},
        MigrationError,
        (
            "min_lr is a key of Megatron: write min_lr_ratio, a share of lr (0.01"
            " here), where min_lr is an absolute rate @ actor.optim.min_lr"
        ),
    ),
    Row(
        "Megatron's warmup start",
        {"lr_warmup_init": 0},
        MigrationError,
        (
            "lr_warmup_init is a key of Megatron: write lr_warmup_init_ratio, a"
            " share of lr, where lr_warmup_init is an absolute rate @"
            " actor.optim.lr_warmup_init"
        ),
    ),
    Row(
        "Megatron's own switch",
        {"use_layer_wise_distributed_optimizer": True},
        MigrationError,
        (
            "use_layer_wise_distributed_optimizer is a key of Megatron and has no"
            " equal here: remove it @"
            " actor.optim.use_layer_wise_distributed_optimizer"
        ),
    ),
    Row(
        "a _target_ of one's own",
        {"_target_": "torch.optim.SGD", "optimizer": "SGD"},
        ConfigError,
        (
            "_target_ is set by the library, not to torch.optim.SGD: choose the"
            " class by optimizer_impl and optimizer @ actor.optim._target_"
        ),
    ),
    Row(
        "misspelt class",
        {"optimizer": "Adamw"},
        TargetError,
        (
            "optimizer_impl=torch.optim{version} was imported but has no Adamw: did"
            " you mean AdamW, Adam, RAdam? @ actor.optim.optimizer"
        ),
    ),
    Row(
        "class of another module",
        {"optimizer": "SDG"},
        TargetError,
        (
            "optimizer_impl=torch.optim{version} was imported but has no SDG: did"
            " you mean SGD? @ actor.optim.optimizer"
        ),
    ),
    Row(
        "module missing",
        {"optimizer_impl": "surely_missing_pkg.optim"},
        TargetError,
        (
            "the module surely_missing_pkg.optim is not installed: install its"
            " package @ actor.optim.optimizer_impl"
        ),
    ),
    Row(
        "submodule missing",
        {"optimizer_impl": "torch.optimm"},
        TargetError,
        (
            "the module torch.optimm does not exist: torch has no optimm: did you"
            " mean optim? @ actor.optim.optimizer_impl"
        ),
    ),
    Row(
        "known package missing",
        {"optimizer_impl": "heavyball"},
        TargetError,
        (
            "the module heavyball is not installed: pip install heavyball @"
            " actor.optim.optimizer_impl"
        ),
    ),
    Row(
        "not an optimizer",
        {"optimizer": "lr_scheduler"},
        TargetError,
        (
            "torch.optim.lr_scheduler is a module and no torch.optim.Optimizer: choose"
            " a subclass such as AdamW @ actor.optim.optimizer"
        ),
    ),
    Row(
        "the base class",
        {"optimizer": "Optimizer"},
        TargetError,
        (
            "torch.optim.Optimizer is the base class: choose one such as AdamW @"
            " actor.optim.optimizer"
        ),
    ),
    Row(
        "a function of another module",
        {"optimizer_impl": "os", "optimizer": "getcwd"},
        TargetError,
        (
            "os.getcwd is a builtin_function_or_method and no torch.optim.Optimizer:"
            " choose a subclass such as AdamW @ actor.optim.optimizer"
        ),
    ),
    Row(
        "no Python name",
        {"optimizer": "Adam-W"},
        TargetError,
        (
            "'Adam-W' is neither a Python name nor a dotted path of them"
            " @ actor.optim.optimizer"
        ),
    ),
    Row(
        "dotted path that disagrees",
        {"optimizer": "torch.optim.SGD", "optimizer_impl": "torchao.optim"},
        TargetError,
        (
            "torch.optim.SGD is in torch.optim, but optimizer_impl is"
            " torchao.optim: write optimizer_impl=torch.optim optimizer=SGD @"
            " actor.optim.optimizer"
        ),
    ),
    Row(
        "unknown argument",
        {"override_optimizer_config": {"fussed": True}},
        UnknownKeyError,
        (
            "AdamW takes no fussed: did you mean fused? (it takes lr, betas, eps,"
            " weight_decay, amsgrad, maximize, foreach, capturable, differentiable,"
            " fused) @ actor.optim.override_optimizer_config.fussed"
        ),
    ),
    Row(
        "two unknown arguments",
        {"override_optimizer_config": {"fussed": True, "momentum": 0.9}},
        UnknownKeyError,
        (
            "2 problems:\n"
            "  - AdamW takes no fussed: did you mean fused? (it takes lr, betas, eps,"
            " weight_decay, amsgrad, maximize, foreach, capturable, differentiable,"
            " fused) @ actor.optim.override_optimizer_config.fussed\n"
            "  - AdamW takes no momentum (it takes lr, betas, eps, weight_decay,"
            " amsgrad, maximize, foreach, capturable, differentiable, fused) @"
            " actor.optim.override_optimizer_config.momentum"
        ),
    ),
    Row(
        "changed field the class lacks",
        {"optimizer": "SGD", "betas": [0.9, 0.95]},
        UnknownKeyError,
        (
            "SGD takes no betas: leave betas at its default, or set strict=false"
            " (it takes lr, momentum, dampening, weight_decay, nesterov, maximize,"
            " foreach, differentiable, fused) @ actor.optim.betas"
        ),
    ),
    Row(
        "parameters in the config",
        {"override_optimizer_config": {"params": []}},
        UnknownKeyError,
        (
            "params is set by the library: give the module to build_optimizer @"
            " actor.optim.override_optimizer_config.params"
        ),
    ),
    Row(
        "a nested target",
        {"override_optimizer_config": {"eps": {"_target_": "os.getcwd"}}},
        UnknownKeyError,
        (
            "_target_ is refused here: arguments are plain values @"
            " actor.optim.override_optimizer_config.eps"
        ),
    ),
    Row(
        "a field twice",
        {"override_optimizer_config": {"lr": 0.01}},
        ConfigError,
        (
            "lr is 0.01 here and 0.001 in the field lr: keep the field @"
            " actor.optim.override_optimizer_config.lr"
        ),
    ),
    Row(
        "fused and foreach",
        {"override_optimizer_config": {"fused": True, "foreach": True}},
        ConfigError,
        (
            "fused and foreach exclude each other: set one of them, not also"
            " actor.optim.override_optimizer_config.foreach @"
            " actor.optim.override_optimizer_config.fused"
        ),
    ),
    Row(
        "implementation the class lacks",
        {"optimizer": "RMSprop", "implementation": "fused"},
        UnknownKeyError,
        (
            "RMSprop has no fused implementation: leave it null @"
            " actor.optim.implementation"
        ),
    ),
    Row(
        "implementation and flag",
        {"implementation": "fused", "override_optimizer_config": {"fused": False}},
        ConfigError,
        (
            "fused is set here and by implementation: keep one of them @"
            " actor.optim.override_optimizer_config.fused"
        ),
    ),
    Row(
        "text for a flag",
        {"override_optimizer_config": {"amsgrad": "false"}},
        ConfigError,
        (
            "'false' is not a bool: write true or false @"
            " actor.optim.override_optimizer_config.amsgrad"
        ),
    ),
    Row(
        "text for an optional flag",
        {"override_optimizer_config": {"foreach": "yes"}},
        ConfigError,
        (
            "'yes' is not a bool: write true or false @"
            " actor.optim.override_optimizer_config.foreach"
        ),
    ),
    Row(
        "text for a number",
        {"optimizer": "SGD", "override_optimizer_config": {"momentum": "high"}},
        ConfigError,
        (
            "'high' is not a number such as 0 @"
            " actor.optim.override_optimizer_config.momentum"
        ),
    ),
    Row(
        "scalar eps for Adafactor",
        {"optimizer": "Adafactor", "eps": 1e-08},
        ConfigError,
        ("1e-08 is not a list of 2 values such as [None, 0.001] @ actor.optim.eps"),
    ),
    Row(
        "pair of eps too short",
        {"optimizer": "Adafactor", "override_optimizer_config": {"eps": [0.001]}},
        ConfigError,
        (
            "eps has 1 of the 2 values that the class wants, such as [None, 0.001]"
            " @ actor.optim.override_optimizer_config.eps"
        ),
    ),
    Row(
        "constructor refuses",
        {"optimizer": "SGD", "override_optimizer_config": {"nesterov": True}},
        ConfigError,
        (
            "torch.optim.sgd.SGD refuses its arguments: ValueError: Nesterov"
            " momentum requires a momentum and zero dampening @"
            " actor.optim.override_optimizer_config.nesterov"
        ),
    ),
    Row(
        "an argument that has to be set",
        {
            "optimizer_impl": "bitsandbytes.optim",
            "optimizer": "LARS",
            "override_optimizer_config": {},
        },
        ConfigError,
        (
            "LARS does not work with momentum=0: write 0.9 @"
            " actor.optim.override_optimizer_config.momentum"
        ),
    ),
    Row(
        "Muon on a bias",
        {"optimizer": "Muon"},
        ConfigError,
        (
            "Muon takes matrices (2-D parameters) only, not bias (2,) (1 in all);"
            " choose optim@MODULE.optim=muon, or AdamW with a rule for the matrices:"
            " param_groups=[{ndim: 2, optimizer: Muon}] @ actor.optim.optimizer"
        ),
    ),
    Row(
        "LBFGS without closure",
        {"optimizer": "LBFGS"},
        ConfigError,
        (
            "LBFGS needs optimizer.step(closure), where closure() clears the"
            " gradients, computes the loss, calls backward() and returns the loss;"
            " where the training loop does this, say provides=['closure'] to"
            " build_optimizer @ actor.optim.optimizer"
        ),
    ),
    Row(
        "SparseAdam",
        {"optimizer": "SparseAdam"},
        ConfigError,
        (
            "SparseAdam needs sparse gradients for every parameter, as"
            " nn.Embedding(..., sparse=True) gives them; where the training loop"
            " does this, say provides=['sparse_gradients'] to build_optimizer @"
            " actor.optim.optimizer"
        ),
    ),
    Row(
        "misspelt schedule",
        {"lr_scheduler_type": "cosin"},
        ConfigError,
        (
            "no schedule 'cosin': did you mean cosine? (there are constant, cosine,"
            " cosine_with_restarts, inverse_sqrt, linear, polynomial, wsd, and torch's"
            " classes by dotted path) @ actor.optim.lr_scheduler_type"
        ),
    ),
    Row(
        "field the schedule ignores",
        {"lr_scheduler_type": "linear", "num_cycles": 2},
        ConfigError,
        (
            "the schedule linear does not read num_cycles: set num_cycles=0.5, or"
            " strict=false @ actor.optim.num_cycles"
        ),
    ),
    Row(
        "old key removed value",
        {"warmup_steps_ratio": 0.1, "lr_warmup_steps_ratio": 0.2},
        MigrationError,
        (
            "warmup_steps_ratio: 0.1 and lr_warmup_steps_ratio: 0.2 are one key"
            " with two values: keep one of them @ actor.optim.warmup_steps_ratio"
        ),
    ),
    Row(
        "several at once",
        {"lr": -1, "weight_deacy": 0.1, "optimizer": "Adamw"},
        ConfigError,
        (
            "3 problems:\n"
            "  - -1 is not a finite float >= 0 @ actor.optim.lr\n"
            "  - no field weight_deacy: did you mean weight_decay? @"
            " actor.optim.weight_deacy\n"
            "  - optimizer_impl=torch.optim{version} was imported but has no Adamw:"
            " did you mean AdamW, Adam, RAdam? @ actor.optim.optimizer"
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_wrong_node(row: Row, module: nn.Module) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {**row.node, "_full_key_": "actor.optim"})
    assert type(caught.value) is row.error
    assert str(caught.value) == row.message.replace("{version}", TORCH)


def test_the_table_is_long_enough() -> None:
    assert len(ROWS) >= 40
    assert len({row.name for row in ROWS}) == len(ROWS)
