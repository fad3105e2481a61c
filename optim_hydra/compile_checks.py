"""Find out, before a class is called, whether compiling its step would be of use.

torch compiles most classes of its own well. Others break it at each step: they keep
numbers that change in their groups, or read the rate as a number, which is compiled in
or ends the compiling. So each class takes a few steps on small tensors here, with
torch's tracing and without its code generation, which takes about a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.compiled_step import compiled_update, update_of, with_tensor_rates
from optim_hydra.errors import Problems
from optim_hydra.needs import need_of
from optim_hydra.registry import builder_of
from optim_hydra.signature import signature_of
from optim_hydra.small_trial import SmallTrial, can_be_tried, on_its_own, place_for

__all__ = ["check_compiled", "why_not_compiled"]

# Of the rate, in steps of the trial: far enough apart that one that was compiled in
# shows in the result.
_FACTORS = (1.0, 0.25, 4.0, 0.5, 2.0, 0.25, 1.0)
_SETTLED = 4
_LR = 0.03
_TOLERANCE = 0.02


class _Tracer:
    """A back end that counts the graphs that it is given, and runs them as they are."""

    num_graphs = 0

    def __call__(self, graph: Any, inputs: Any) -> Callable[..., Any]:
        del inputs
        self.num_graphs += 1
        forward: Callable[..., Any] = graph.forward
        return forward


def check_compiled(
    called: Iterable[tuple[type[Optimizer], Mapping[str, Any]]],
    wrappers: Iterable[type[Optimizer]],
    device: torch.device,
    problems: Problems,
) -> None:
    """Note classes whose step is no better compiled.

    Args:
        called: Each class with its keyword arguments.
        wrappers: Classes around one of them.
        device: Of the parameters.
        problems: Where it is noted.

    """
    for wrapper in wrappers:
        what = f"{wrapper.__name__} takes the steps of another optimizer, which stay"
        problems.add(f"{what} uncompiled: set compile_step=false", "compile_step")
    for cls, arguments in called:
        why = why_not_compiled(cls, arguments, device)
        if why:
            instead = "leave implementation out, or " if "foreach" in why else ""
            instead = "leave it out, or " if why.startswith("fused") else instead
            problems.add(f"{why}: {instead}set compile_step=false", "compile_step")


def why_not_compiled(
    cls: type[Optimizer], arguments: Mapping[str, Any], device: torch.device
) -> str:
    """Say why a compiled step of a class would be of no use; nothing if it is.

    Args:
        cls: The class.
        arguments: Its keyword arguments.
        device: Of its parameters.

    Example:
        >>> cpu = torch.device("cpu")
        >>> why_not_compiled(torch.optim.AdamW, {"lr": 1e-3, "fused": True}, cpu)
        'fused is compiled code already'

    """
    need = need_of(cls)
    if need.compiles_itself:
        return f"{cls.__name__} compiles its step by itself"
    if arguments.get("fused"):
        return "fused is compiled code already"
    if need.takes_model or need.process_group or (need.protocol and not need.only_warn):
        return f"{cls.__name__} does more in its step than torch can compile"
    if builder_of(cls) is not None or "lr" not in signature_of(cls).arguments:
        return ""
    on = place_for(device)
    given = {**arguments, "lr": _LR}
    if on.type != "cpu":
        # What torch takes uncompiled with a number only, it compiles there.
        given = {k: v for k, v in given.items() if k not in ("foreach", "capturable")}
    with on_its_own(on):
        return _why(cls, given, on)


def _why(cls: type[Optimizer], arguments: dict[str, Any], on: torch.device) -> str:
    name, tracer = cls.__name__, _Tracer()
    if not can_be_tried(cls, arguments, on):
        return ""
    try:
        expected, _ = _train(cls, arguments, on, None)
        found, nums = _train(cls, arguments, on, tracer)
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        said = str(error).strip().partition("\n")[0]
        return f"the step of {name} fails compiled: {type(error).__name__}: {said}"
    pairs = zip(expected, found, strict=True)
    what = ""
    if not (tracer.num_graphs or _is_disabled()):
        what = f"torch finds nothing in the step of {name} that it could compile"
    elif nums[-1] > nums[_SETTLED - 1]:
        what = f"{name} goes by numbers for which torch would compile each step anew"
    elif any((a - b).norm() > _TOLERANCE * (1e-6 + b.norm()) for a, b in pairs):
        what = f"{name} takes other steps where torch compiles them"
    return what


def _train(
    cls: type[Optimizer],
    arguments: dict[str, Any],
    on: torch.device,
    tracer: _Tracer | None,
) -> tuple[list[Tensor], list[int]]:
    """Return how far small tensors get, and how many graphs there are at each step."""
    trial = SmallTrial(cls, arguments, on)
    groups = trial.optimizer.param_groups
    step: Callable[..., Any] = update_of(cls)
    if tracer is not None:
        step = compiled_update(cls, backend=tracer)
        with_tensor_rates(groups)
    nums = []
    for factor in _FACTORS:
        for group in groups:
            rate = group["lr"]
            group["lr"] = rate.fill_(_LR * factor) if tracer else _LR * factor
        trial.add_gradients()
        step(trial.optimizer)
        nums.append(tracer.num_graphs if tracer else 0)
    return trial.moved(), nums


def _is_disabled() -> bool:
    """Whether torch.compile compiles nothing in this process."""
    switches = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
    return any(os.environ.get(name) == "1" for name in switches)
