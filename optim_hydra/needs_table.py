"""Own the table of what single classes need; see `needs` for what their shape tells."""

from __future__ import annotations

from optim_hydra.need_kinds import Need, Want

__all__ = ["NEEDS"]

_MODES = Need(protocol="train_eval_modes", only_warn=True)
_GRAPH = Need(protocol="create_graph")
_ONE_LR = Need(one_lr=True)
_FIRST_LR = Need(ignores_group_lr=True)
_CLOSURE = Need(protocol="closure")
_AFTER = Need(protocol="closure_after_backward")
_MATRICES = Need(matrices_only=True)
_CUDA = Need(accelerator=True)
_MOMENTUM = Need(wants=(Want("momentum", 0, 0.9),))
_FLAG = Need(group_keys={"use_muon": False}, flag="use_muon")
_LOW_RANK = {"rank": 128, "update_proj_gap": 200, "scale": 0.25, "proj_type": "std"}
_GALORE = Need(group_keys=_LOW_RANK)
_GALORE_8BIT = Need(group_keys=_LOW_RANK, accelerator=True)
_APOLLO = Need(group_keys={**_LOW_RANK, "proj": "random", "scale_type": "tensor"})
_RELATIVE = (Want("relative_step", refused=True, instead=False, only_with="lr"),)
_GALORE_ADAFACTOR = Need(group_keys=_LOW_RANK, wants=_RELATIVE)
_KRON = Need(process_group=True, accelerator=True)
_AUX = (
    "takes nothing but groups with keys of its own: torch.optim.Muon with AdamW for"
    " the rest, in one node, does the same: optim@MODULE.optim=muon"
)


def _object(argument: str) -> Need:
    """Return the need of a class whose argument no config can hold."""
    what = f"needs the argument {argument}, an object that no config holds: make it in"
    return Need(refusal=f"{what} a function, with register_builder(module, class)")


# (module or package, class) -> need; subclasses need the same. The name is the class's
# own: galore_torch exports AdamW as GaLoreAdamW.
NEEDS: dict[tuple[str, str], Need] = {
    ("adam_mini", "Adam_mini"): Need(ignored=("model_sharding",)),
    ("apollo_torch.adafactor", "Adafactor"): _GALORE_ADAFACTOR,
    ("apollo_torch.adamw", "AdamW"): _GALORE,
    ("apollo_torch.adamw8bit", "AdamW8bit"): _GALORE_8BIT,
    ("apollo_torch.apollo", "AdamW"): _APOLLO,
    ("apollo_torch.q_apollo", "AdamW"): Need(
        refusal="breaks in its first step beside bitsandbytes 0.50: choose APOLLOAdamW"
    ),
    **{
        ("bitsandbytes", name): _MOMENTUM
        for name in ("LARS", "LARS8bit", "LARS32bit", "PytorchLARS")
    },
    **{("bitsandbytes", name): _MOMENTUM for name in ("SGD", "SGD8bit", "SGD32bit")},
    ("bitsandbytes", "AdEMAMix32bit"): _CUDA,
    ("bitsandbytes", "PagedAdEMAMix32bit"): _CUDA,
    ("dadaptation", "DAdaptAdam"): _ONE_LR,
    ("dadaptation", "DAdaptLion"): _ONE_LR,
    ("dadaptation", "DAdaptSGD"): _ONE_LR,
    ("galore_torch", "Adafactor"): _GALORE_ADAFACTOR,
    ("galore_torch", "AdamW"): _GALORE,
    ("galore_torch", "AdamW8bit"): _GALORE_8BIT,
    ("heavyball", "PSGDLRA"): Need(bare_parameters=True),
    ("heavyball", "SAMWrapper"): _CLOSURE,
    ("heavyball", "SOAPBase"): Need(
        depends={"precond_scheduler": ("use_precond_schedule", True)}
    ),
    ("heavyball", "StatefulOptimizer"): Need(compiles_itself=True),
    ("heavyball", "SplitOpt"): Need(
        refusal="takes parameters and classes together: name its classes in rules,"
        " param_groups: [{ndim: 2, optimizer: Muon}]"
    ),
    ("kron_torch.dist_kron", "Kron"): _KRON,
    ("kron_torch.dist_onesidedkron", "OneSidedKron"): _KRON,
    ("lomo_optim", "AdaLomo"): Need(
        protocol="fused_backward", takes_model=True, accelerator=True
    ),
    ("muon", "Muon"): Need(
        matrices_only=True, bare_parameters=True, process_group=True
    ),
    ("muon", "MuonWithAuxAdam"): Need(refusal=_AUX),
    ("muon", "SingleDeviceMuon"): _MATRICES,
    ("muon", "SingleDeviceMuonWithAuxAdam"): Need(refusal=_AUX),
    ("prodigyopt", "Prodigy"): _ONE_LR,
    ("pytorch_optimizer", "A2Grad"): Need(
        ignored=("lr",), depends={"rho": ("variant", "exp")}
    ),
    ("pytorch_optimizer", "AdaHessian"): _GRAPH,
    ("pytorch_optimizer", "AliG"): Need(protocol="loss_closure"),
    ("pytorch_optimizer", "BSAM"): _AFTER,
    ("pytorch_optimizer", "DeMo"): Need(modules=("einops",), process_group=True),
    ("pytorch_optimizer", "DistributedMuon"): Need(
        group_keys={"use_muon": False}, flag="use_muon", process_group=True
    ),
    ("pytorch_optimizer", "GSAM"): _object("rho_scheduler"),
    ("pytorch_optimizer", "PCGrad"): Need(protocol="pc_backward", only_warn=True),
    ("pytorch_optimizer", "PNM"): Need(ignored=("eps",)),
    ("pytorch_optimizer", "SafeFP16Optimizer"): Need(
        refusal="has no param_groups: use torch.amp.GradScaler beside the class that"
        " it would wrap"
    ),
    ("pytorch_optimizer", "SophiaH"): _GRAPH,
    ("pytorch_optimizer", "SpectralSphere"): _MATRICES,
    ("pytorch_optimizer", "StableSPAM"): Need(depends={"eta_min": ("t_max", ...)}),
    ("pytorch_optimizer", "WSAM"): Need(protocol="closure", takes_model=True),
    **{
        ("pytorch_optimizer", name): _FLAG
        for name in ("AdaGO", "AdaMuon", "Muon", "MuonClip", "NorMuon")
    },
    **{
        ("pytorch_optimizer", name): _FIRST_LR
        for name in (
            "AdaFactor",
            "ApolloDQN",
            "DAdaptAdaGrad",
            "DAdaptAdam",
            "DAdaptAdan",
            "DAdaptLion",
            "DAdaptSGD",
            "Prodigy",
        )
    },
    **{
        ("pytorch_optimizer", name): _AFTER
        for name in ("FriendlySAM", "LookSAM", "SAM")
    },
    ("timm", "Adahessian"): _GRAPH,
    ("torch", "LBFGS"): Need(protocol="closure", one_group=True),
    ("torch", "Muon"): _MATRICES,
    ("torch", "PostLocalSGDOptimizer"): _object("averager"),
    ("torch", "SparseAdam"): Need(protocol="sparse_gradients"),
    ("torch", "ZeroRedundancyOptimizer"): Need(
        bare_parameters=True, process_group=True
    ),
    ("torch", "_NamedOptimizer"): Need(
        refusal="names the state of another class, which every optimizer built here"
        " has: name that class itself"
    ),
    ("torch_optimizer", "Adahessian"): _GRAPH,
    ("torchao", "CPUOffloadOptimizer"): _CUDA,
    ("torchao", "_AdamBase"): Need(compiles_itself=True),
    ("transformers", "Adafactor"): Need(wants=_RELATIVE),
    ("transformers", "LayerWiseDummyOptimizer"): Need(
        refusal="does nothing in its step, and stands in for others inside"
        " transformers: choose Adafactor, or a class of torch.optim"
    ),
}
