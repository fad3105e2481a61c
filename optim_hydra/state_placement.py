"""Copy saved tensors to where a parameter's state belongs."""

from __future__ import annotations

from typing import Any

from torch import Tensor, distributed

from optim_hydra.state_slots import Slot

__all__ = ["copy_of", "placed"]


def placed(value: Tensor, key: str, slot: Slot) -> Tensor:
    """Return a copy on the parameter's device and mesh, in the dtype it was saved in.

    A counter of steps stays where it was loaded, on the CPU, unless the step reads it
    on the device; so torch does it.
    """
    copy = copy_of(value)
    parameter, group = slot.parameter, slot.group
    is_step = copy.ndim == 0 and key.rpartition(".")[2] == "step"
    if is_step and not (group.get("capturable") or group.get("fused")):
        return copy
    is_on_mesh = distributed.is_available() and distributed.is_initialized()
    if is_on_mesh and (copy.ndim or not parameter.ndim):
        copy = _on_mesh(copy, parameter)
    device = parameter.device
    return copy if copy.device == device else copy.to(device)


def copy_of(value: Tensor) -> Tensor:
    """Copy a tensor; quantised ones can't be cloned, what they are made of can.

    A sharded tensor is made of this process's shard, which may be quantised. What is
    learnt itself (a learning rate) is copied as a number.
    """
    if value.requires_grad:
        value = value.detach()
    if type(value) is Tensor:
        return value.clone()
    flatten = getattr(value, "__tensor_flatten__", None)
    if flatten is None:
        return value.clone()
    names, context = flatten()
    parts = {name: getattr(value, name) for name in names}
    inner = {n: copy_of(p) if isinstance(p, Tensor) else p for n, p in parts.items()}
    unflatten: Any = type(value).__tensor_unflatten__  # type: ignore[attr-defined]
    copied: Tensor = unflatten(inner, context, value.size(), value.stride())
    return copied


def _on_mesh(copy: Tensor, parameter: Tensor) -> Tensor:
    """Shard whole tensors like their parameter, and gather what no mesh shards."""
    from torch.distributed.tensor import DTensor, distribute_tensor  # noqa: PLC0415

    mesh: Any = getattr(parameter, "device_mesh", None)
    placements: Any = getattr(parameter, "placements", None)
    if isinstance(copy, DTensor):
        if mesh is None:
            return copy.full_tensor()
        same = copy.device_mesh == mesh and copy.placements == placements
        return copy if same else copy.redistribute(mesh, placements)
    if mesh is not None and copy.shape == parameter.shape:
        return distribute_tensor(copy, mesh, placements)
    return copy
