"""Say which packages the zoo runs, and what its node writes for single classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from optim_hydra.cli.catalogue import MODULES

__all__ = ["IMPLS", "Extra", "extra_of"]

# Those of the command, and torch's classes for several processes.
IMPLS = (MODULES[0], "torch.distributed.optim", *MODULES[1:], "muon")


@dataclass(frozen=True)
class Extra:
    """What a node of one class writes beside its class and its lr."""

    further: dict[str, Any] = field(default_factory=dict)
    """Its `override_optimizer_config`."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Further fields of the node."""
    rule: dict[str, Any] = field(default_factory=dict)
    """The further arguments of one rule, for the matrices."""


_MOMENTUM = Extra({"momentum": 0.9})
_NOT_RELATIVE = Extra({"relative_step": False})
_MUON = Extra(rule={"use_muon": True})
_WRAPS_INSTANCE = Extra({"optimizer": {"optimizer": "SGD"}})
_WRAPS_CLASS = Extra({"base_optimizer": {"optimizer": "SGD"}})
_LOW_RANK = {"rank": 2, "update_proj_gap": 10, "scale": 1.0, "proj_type": "std"}
_APOLLO = {**_LOW_RANK, "proj": "random", "scale_type": "tensor"}

EXTRAS: dict[tuple[str, str], Extra] = {
    **{
        ("bitsandbytes.optim", name): _MOMENTUM
        for name in (
            "LARS",
            "LARS8bit",
            "LARS32bit",
            "PytorchLARS",
            "SGD",
            "SGD8bit",
            "SGD32bit",
        )
    },
    **{
        ("pytorch_optimizer", name): _MUON
        for name in ("AdaGO", "AdaMuon", "DistributedMuon", "Muon", "MuonClip")
    },
    ("pytorch_optimizer", "NorMuon"): _MUON,
    **{
        ("pytorch_optimizer", name): _WRAPS_INSTANCE
        for name in (
            "Lookahead",
            "Magma",
            "OrthoGrad",
            "PCGrad",
            "ScheduleFreeWrapper",
            "TRAC",
        )
    },
    **{
        ("pytorch_optimizer", name): _WRAPS_CLASS
        for name in ("FriendlySAM", "GSAM", "LookSAM", "SAM", "WSAM")
    },
    ("torch.distributed.optim", "ZeroRedundancyOptimizer"): Extra(
        {"optimizer_class": {"optimizer": "SGD"}}
    ),
    ("pytorch_optimizer", "AliG"): Extra({"max_lr": 0.1}),
    ("pytorch_optimizer", "SaRA"): Extra({"threshold": 1.0}),
    ("heavyball", "SAMWrapper"): Extra(
        {"wrapped_optimizer": {"optimizer_impl": "heavyball", "optimizer": "AdamW"}}
    ),
    # optimi takes triton, where that is installed, on the CPU too.
    ("optimi", "StableAdamW"): Extra({"triton": False}),
    ("pytorch_optimizer", "BSAM"): Extra(
        # It multiplies the gradient by the weight decay.
        {"num_data": 64, "foreach": False},
        fields={"weight_decay": 1.0},
    ),
    ("pytorch_optimizer", "Ranger21"): Extra({"num_iterations": 100}),
    ("torch_optimizer", "Lookahead"): _WRAPS_INSTANCE,
    ("timm.optim", "Lookahead"): Extra({"base_optimizer": {"optimizer": "SGD"}}),
    ("transformers.optimization", "Adafactor"): _NOT_RELATIVE,
    ("galore_torch", "GaLoreAdafactor"): _NOT_RELATIVE,
    ("apollo_torch", "GaLoreAdafactor"): _NOT_RELATIVE,
    ("galore_torch", "GaLoreAdamW"): Extra(rule=_LOW_RANK),
    ("apollo_torch", "GaLoreAdamW"): Extra(rule=_LOW_RANK),
    ("apollo_torch", "APOLLOAdamW"): Extra(rule=_APOLLO),
    ("adam_mini", "Adam_mini"): Extra({"dim": 8, "n_heads": 2}),
}


def extra_of(impl: str, name: str) -> Extra:
    """Return what the node of a class writes beside its class and its lr."""
    return EXTRAS.get((impl, name), Extra())
