"""Choose the fastest implementation that a class has for its parameters.

The rules are of measurements (benchmarks/implementations.py), not made anew in each
run, so that a run can be repeated bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.groups import ClassGroups
from optim_hydra.parameters import Parameters
from optim_hydra.planning import Plan
from optim_hydra.signature import signature_of

__all__ = ["fastest", "told_fastest", "told_flags", "with_fastest"]

# Up to here the calls for one tensor cost more than its numbers do, on a CPU.
_SMALL = 4096


def with_fastest(
    plan: Plan, groups: Sequence[ClassGroups], parameters: Parameters
) -> Plan:
    """Add the flags of `implementation: fastest` to a plan, or to its groups.

    A compiled step is one and the same without any.
    """
    if plan.optim.implementation != "fastest" or plan.optim.compile_step:
        return plan
    may_be_sparse = parameters.has_sparse(())
    for own in groups:
        tensors = [] if may_be_sparse else [tensor for _, tensor in own.named()]
        own.switches = fastest(own.cls, tensors, own.arguments())
    if groups:
        return plan
    tensors = [] if may_be_sparse else [tensor for _, tensor in parameters.named()]
    arguments = plan.node.arguments
    switches = fastest(plan.node.cls, tensors, arguments.kwargs)
    arguments = replace(arguments, kwargs={**arguments.kwargs, **switches})
    return replace(plan, node=replace(plan.node, arguments=arguments))


def fastest(
    cls: type[Optimizer], tensors: Sequence[Tensor], arguments: dict[str, Any]
) -> dict[str, bool]:
    """Return the flag to set, nothing where the class's own choice is the fastest.

    Args:
        cls: The optimizer class; one without the flags has one implementation.
        tensors: Its parameters; none where their gradients may be sparse.
        arguments: Its keyword arguments.

    Example:
        >>> import torch
        >>> fastest(torch.optim.AdamW, [torch.ones(3)], {})
        {'fused': True}
        >>> fastest(torch.optim.RMSprop, [torch.ones(3)], {})
        {'foreach': True}
        >>> fastest(torch.optim.RMSprop, [torch.ones(300, 300)], {})
        {}

    """
    devices = {tensor.device.type for tensor in tensors}
    return _on(devices.pop(), cls, tensors, arguments) if len(devices) == 1 else {}


def told_fastest(
    cls: type[Optimizer], tensors: Sequence[Tensor] | None, arguments: dict[str, Any]
) -> str:
    """Say what `fastest` sets, wherever the parameters may be.

    Args:
        cls: As for `fastest`.
        tensors: As for `fastest`; None where they are not known.
        arguments: As for `fastest`.

    Example:
        >>> import torch
        >>> told_fastest(torch.optim.AdamW, None, {})
        'fused=True'
        >>> told_fastest(torch.optim.RMSprop, None, {})
        'foreach=True for small tensors on a CPU, its own choice elsewhere'

    """
    if tensors is not None and not tensors:
        return told_flags(cls, {})
    on_cpu, elsewhere = [
        told_flags(cls, _on(device, cls, tensors or (), arguments))
        for device in ("cpu", "cuda")
    ]
    if on_cpu == elsewhere:
        return on_cpu
    if tensors is None:
        on_cpu += " for small tensors"
    return f"{on_cpu} on a CPU, {elsewhere} elsewhere"


def told_flags(cls: type[Optimizer], arguments: dict[str, Any]) -> str:
    """Say which implementation a class has with its arguments.

    Example:
        >>> import torch
        >>> told_flags(torch.optim.AdamW, {"lr": 0.1, "fused": True})
        'fused=True'
        >>> told_flags(torch.optim.Muon, {"lr": 0.1})
        'the only one that it has'

    """
    flags = _flags(cls)
    if not flags:
        return "the only one that it has"
    chosen = [f"{flag}=True" for flag in sorted(flags) if arguments.get(flag)]
    return ", ".join(chosen) or "its own choice"


def _flags(cls: type) -> set[str]:
    return {"foreach", "fused"} & set(signature_of(cls).arguments)


def _on(
    device: str,
    cls: type[Optimizer],
    tensors: Sequence[Tensor],
    arguments: dict[str, Any],
) -> dict[str, bool]:
    if arguments.get("differentiable"):
        return {}
    taken = _flags(cls)
    is_torch = any(
        base.__module__.startswith("torch.optim.") for base in _own_bases(cls)
    )
    is_real = all(tensor.is_floating_point() for tensor in tensors)
    if "fused" in taken and is_torch and is_real and device in {"cpu", "cuda"}:
        return {"fused": True}
    # Elsewhere torch takes foreach by itself where it is the faster one.
    is_small = sum(tensor.numel() for tensor in tensors) <= _SMALL * len(tensors)
    if "foreach" in taken and device == "cpu" and is_small:
        return {"foreach": True}
    return {}


def _own_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base is not Optimizer]
