"""Own the table of what a class needs beyond parameters and keyword arguments."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NEEDS", "PROTOCOLS", "Need", "need_of"]

# What a training loop can promise (`provides=`), and the code that keeps it.
PROTOCOLS: dict[str, str] = {
    "closure": "optimizer.step(closure), where closure() clears the gradients, computes"
    " the loss, calls backward() and returns the loss",
    "closure_after_backward": "loss.backward() and then optimizer.step(closure), where"
    " closure() clears the gradients, computes the loss, calls backward() and returns"
    " the loss",
    "create_graph": "loss.backward(create_graph=True) before each step",
    "sparse_gradients": "sparse gradients for every parameter, as"
    " nn.Embedding(..., sparse=True) gives them",
    "train_eval_modes": "optimizer.eval() before evaluating or saving and"
    " optimizer.train() before going on",
}


@dataclass(frozen=True)
class Need:
    """What one class needs."""

    protocol: str = ""
    """A key of `PROTOCOLS` that the training loop has to keep."""
    matrices_only: bool = False
    """It takes two-dimensional parameters only."""
    takes_model: bool = False
    """Its first argument is the model, not parameters."""
    bare_parameters: bool = False
    """It refuses parameters that come with their names."""
    one_lr: bool = False
    """Its groups must share one lr; it stops at the first step otherwise."""
    ignores_group_lr: bool = False
    """It reads the lr of one group for all."""
    one_group: bool = False
    """It takes no groups."""
    only_warn: bool = False
    """It trains without the protocol, so a loop that does not promise it is warned."""


_MODES = Need(protocol="train_eval_modes", only_warn=True)

# (package, class) -> need; subclasses need the same.
NEEDS: dict[tuple[str, str], Need] = {
    ("dadaptation", "DAdaptAdam"): Need(one_lr=True),
    ("dadaptation", "DAdaptLion"): Need(one_lr=True),
    ("dadaptation", "DAdaptSGD"): Need(one_lr=True),
    ("prodigyopt", "Prodigy"): Need(one_lr=True),
    ("pytorch_optimizer", "AdaHessian"): Need(protocol="create_graph"),
    ("pytorch_optimizer", "AdamMini"): Need(takes_model=True),
    **{
        ("pytorch_optimizer", name): Need(ignores_group_lr=True)
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
    ("pytorch_optimizer", "FriendlySAM"): Need(protocol="closure_after_backward"),
    ("pytorch_optimizer", "LookSAM"): Need(protocol="closure_after_backward"),
    ("pytorch_optimizer", "SAM"): Need(protocol="closure_after_backward"),
    ("pytorch_optimizer", "SPlus"): _MODES,
    ("pytorch_optimizer", "ScheduleFreeAdamW"): _MODES,
    ("pytorch_optimizer", "ScheduleFreeRAdam"): _MODES,
    ("pytorch_optimizer", "ScheduleFreeSGD"): _MODES,
    ("pytorch_optimizer", "ScheduleFreeWrapper"): _MODES,
    ("torch", "LBFGS"): Need(protocol="closure", one_group=True),
    ("torch", "ZeroRedundancyOptimizer"): Need(bare_parameters=True),
    ("torch", "SparseAdam"): Need(protocol="sparse_gradients"),
    ("torch", "Muon"): Need(matrices_only=True),
    ("schedulefree", "AdamWScheduleFree"): _MODES,
    ("schedulefree", "AdamWScheduleFreePaper"): _MODES,
    ("schedulefree", "RAdamScheduleFree"): _MODES,
    ("schedulefree", "SGDScheduleFree"): _MODES,
}


def need_of(cls: type) -> Need:
    """Return what a class needs; the empty need where nothing is known."""
    for base in cls.__mro__:
        need = NEEDS.get((base.__module__.partition(".")[0], base.__name__))
        if need is not None:
            return need
    return Need()
