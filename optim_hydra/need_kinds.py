"""Own what a class may need beyond parameters and keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PROTOCOLS", "Need", "Want"]

# What a training loop can promise (`provides=`), and the code that keeps it.
PROTOCOLS: dict[str, str] = {
    "closure": "optimizer.step(closure), where closure() clears the gradients, computes"
    " the loss, calls backward() and returns the loss",
    "closure_after_backward": "loss.backward() and then optimizer.step(closure), where"
    " closure() clears the gradients, computes the loss, calls backward() and returns"
    " the loss",
    "create_graph": "loss.backward(create_graph=True) before each step",
    "fused_backward": "optimizer.fused_backward(loss, lr) in place of loss.backward()"
    " and optimizer.step()",
    "loss_closure": "loss.backward() and then optimizer.step(lambda: loss)",
    "pc_backward": "optimizer.pc_backward([loss, other_loss]) in place of"
    " loss.backward()",
    "sparse_gradients": "sparse gradients for every parameter, as"
    " nn.Embedding(..., sparse=True) gives them",
    "train_eval_modes": "optimizer.eval() before evaluating or saving and"
    " optimizer.train() before going on",
}


@dataclass(frozen=True)
class Want:
    """An argument whose own default the class refuses, or does not work with."""

    argument: str
    refused: Any
    """The value that will not do, the class's own default."""
    instead: Any
    """What to write."""
    only_with: str = ""
    """It will do where this argument is not given."""


@dataclass(frozen=True)
class Need:
    """What one class needs."""

    protocol: str = ""
    """A key of `PROTOCOLS` that the training loop has to keep."""
    only_warn: bool = False
    """It trains without the protocol, so a loop that does not promise it is warned."""
    matrices_only: bool = False
    """It takes two-dimensional parameters only."""
    takes_model: bool = False
    """Its first argument is the model, not parameters."""
    bare_parameters: bool = False
    """It refuses parameters that come with their names."""
    named_parameters: bool = False
    """It refuses parameters that come without."""
    one_lr: bool = False
    """Its groups must share one lr; it stops at the first step otherwise."""
    ignores_group_lr: bool = False
    """It reads the lr of one group for all."""
    one_group: bool = False
    """It takes no groups."""
    group_keys: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of groups that its constructor does not take: name -> example."""
    flag: str = ""
    """The one of them that every group must have, true or false."""
    wants: tuple[Want, ...] = ()
    """Arguments that have to be written."""
    ignored: tuple[str, ...] = ()
    """Arguments that it takes and does nothing with."""
    depends: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    """Argument -> another one and the value without which it has no effect; `...`
    stands for any that is not null."""
    modules: tuple[str, ...] = ()
    """Further modules that it imports when it is called or steps."""
    accelerator: bool = False
    """It works on parameters of an accelerator only."""
    process_group: bool = False
    """It calls torch.distributed."""
    compiles_itself: bool = False
    """Its step is compiled by its own code."""
    refusal: str = ""
    """Why it is not built from a config, and what to write instead."""
