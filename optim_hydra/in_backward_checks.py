"""Find out, before a class is called, whether it can update one parameter at a time.

Most classes can. Those that use all gradients at once (a norm over them, an estimate of
the rate) or a closure can't. Each class takes a few steps on small tensors, all at once
and one at a time, and must come to the same weights, state and groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.compiled_step import update_of
from optim_hydra.differences import equal
from optim_hydra.errors import Problems
from optim_hydra.needs import need_of
from optim_hydra.registry import builder_of
from optim_hydra.replicas import LATER, later_reducer
from optim_hydra.small_trial import SmallTrial, can_be_tried, on_its_own, place_for
from optim_hydra.step_in_backward import view

__all__ = ["check_in_backward", "why_not_in_backward"]

_FIELD = "step_in_backward"
# Of the gradients, in steps of the trial: below and above what classes clip at.
_SCALES = (10.0, 0.01, 10.0, 1.0)


def check_in_backward(
    called: Iterable[tuple[type[Optimizer], Mapping[str, Any]]],
    wrappers: Iterable[type[Optimizer]],
    roots: Iterable[nn.Module],
    tensors: Sequence[Tensor],
    problems: Problems,
) -> None:
    """Note classes and models whose updates can't be made in backward.

    Args:
        called: Each class with its keyword arguments.
        wrappers: Classes around one of them.
        roots: The modules.
        tensors: The parameters.
        problems: Where it is noted.

    """
    instead = f"set {_FIELD}=false"
    for wrapper in wrappers:
        what = f"{wrapper.__name__} takes the steps of another optimizer"
        problems.add(f"{what}: {instead}", _FIELD)
    for root in roots:
        later = later_reducer(root)
        if later:
            problems.add(LATER.format(later), _FIELD)
    meshes = {getattr(tensor, "device_mesh", None) for tensor in tensors}
    if None in meshes and len(meshes) > 1:
        what = "gradients of plain parameters beside sharded ones are averaged over"
        problems.add(f"{what} processes after backward: {instead}", _FIELD)
    for cls, arguments in called:
        why = why_not_in_backward(cls, arguments, tensors[0].device)
        if why:
            problems.add(f"{why}: {instead}", _FIELD)


def why_not_in_backward(
    cls: type[Optimizer], arguments: Mapping[str, Any], device: torch.device
) -> str:
    """Say why a class can't update one parameter at a time; nothing if it can.

    Args:
        cls: The class.
        arguments: Its keyword arguments.
        device: Of its parameters.

    Example:
        >>> why_not_in_backward(torch.optim.LBFGS, {}, torch.device("cpu"))
        'LBFGS needs more than one gradient at a time'

    """
    need = need_of(cls)
    is_plain = need.only_warn or need.protocol in ("", "sparse_gradients")
    if need.takes_model or need.process_group or not is_plain:
        return f"{cls.__name__} needs more than one gradient at a time"
    if builder_of(cls) is not None:
        return ""
    on, name = place_for(device), cls.__name__
    if not can_be_tried(cls, arguments, on):
        return ""
    try:
        with torch.compiler.set_stance("force_eager"):
            together = _train(cls, arguments, on, is_in_backward=False)
            apart = _train(cls, arguments, on, is_in_backward=True)
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        said = str(error).strip().partition("\n")[0]
        return f"the steps of {name} can't be tried: {type(error).__name__}: {said}"
    if _same(together, apart):
        return ""
    return f"{name} takes other steps where each parameter is updated by itself"


def _train(
    cls: type[Optimizer],
    arguments: Mapping[str, Any],
    on: torch.device,
    *,
    is_in_backward: bool,
) -> dict[str, Any]:
    """Return weights, state and groups after some steps."""
    with on_its_own(on):
        trial = SmallTrial(cls, arguments, on)
        optimizer = trial.optimizer
        for scale in _SCALES:
            trial.add_gradients(scale)
            for group in optimizer.param_groups if is_in_backward else ():
                for parameter in group["params"]:
                    update_of(cls)(view(optimizer, group, parameter))
                    parameter.grad = None
            optimizer.step()
    found: dict[str, Any] = {"weights": trial.moved()}
    for number, group in enumerate(optimizer.param_groups):
        found[f"group {number}"] = {k: v for k, v in group.items() if k != "params"}
    for number, parameter in enumerate(trial.parameters):
        found[f"state {number}"] = dict(optimizer.state.get(parameter) or {})
    return found


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _same(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(_same(a, b) for a, b in pairs)
    if type(first) is not type(second):
        return False
    is_known = isinstance(first, Tensor | int | float | str | None)
    return not is_known or equal(first, second)
