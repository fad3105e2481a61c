"""Own `export_optimizer_state_dict`: saved state in the forms that others read."""

from __future__ import annotations

from typing import Any, Literal, get_args

from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.checkpoint import optimizer_state_dict
from optim_hydra.errors import Problem, WrongObjectError, nearest
from optim_hydra.saved_state import StateError
from optim_hydra.state_slots import leaves, slots_of
from optim_hydra.unwrapping import unwrapped

__all__ = ["export_optimizer_state_dict"]

Form = Literal["native", "nested", "flattened"]
_Groups = list[dict[str, Any]]


def export_optimizer_state_dict(optimizer: Optimizer, form: Form) -> dict[str, Any]:
    """Return the state of an optimizer as programs without this library load it.

    What only this library reads (the classes, schedules, what belongs to no parameter)
    is left out. Groups of equal settings are one.

    Args:
        optimizer: What `build_optimizer` or `build_optimizers` returned.
        form: Who reads it.
            `native`: `torch.optim.Optimizer.load_state_dict`, of an optimizer of the
            same class with the same groups.
            `nested`: `torch.distributed.checkpoint.state_dict`.
            `flattened`: the same with `flatten_optimizer_state_dict=True`, and
            torchtitan.

    Raises:
        StateError: Parameters of several classes, or counters of several values,
            which `native` has no place for.
        WrongObjectError: There is no such form, or the argument is no optimizer.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer
        >>> module = nn.Linear(2, 1)
        >>> optimizer = build_optimizer(module, {"lr": 0.1})
        >>> exported = export_optimizer_state_dict(optimizer, "native")
        >>> torch.optim.AdamW(module.parameters()).load_state_dict(exported)

    """
    if form not in get_args(Form):
        near = nearest(str(form), get_args(Form))
        msg = f"form={form!r} is none of {', '.join(get_args(Form))}{near}"
        raise WrongObjectError(msg)
    optimizer = unwrapped(optimizer)
    flat = optimizer_state_dict(optimizer)
    if form == "flattened":
        kinds = ("state.", "param_groups.")
        kept = {key: value for key, value in flat.items() if key.startswith(kinds)}
        # Who names parameters looks for the names of the group with each of them.
        for group in _groups(optimizer):
            for name in group["params"]:
                kept[f"param_groups.{name}.param_names"] = group["params"]
        return kept
    return _native(optimizer) if form == "native" else _nested(optimizer)


def _groups(optimizer: Optimizer) -> _Groups:
    """Return the groups with names in place of parameters."""
    groups: dict[int, dict[str, Any]] = {}
    for slot in slots_of(optimizer):
        group = groups.setdefault(id(slot.group), {**slot.group, "params": []})
        group.pop("param_names", None)
        group["params"].append(slot.name)
    return list(groups.values())


def _nested(optimizer: Optimizer) -> dict[str, Any]:
    state = {slot.name: slot.state() for slot in slots_of(optimizer)}
    return {"state": state, "param_groups": _merged(_groups(optimizer))}


def _native(optimizer: Optimizer) -> dict[str, Any]:
    inner = [leaf for _, leaf, _ in leaves(optimizer)]
    classes = {type(leaf).__name__: None for leaf in inner}
    if len(classes) > 1:
        what = (
            f"the native form has no place for several classes ({', '.join(classes)}):"
            " export the optimizers of the container one by one, or as nested"
        )
        raise StateError([Problem(what, "", StateError)])
    if len(inner) == 1:
        return inner[0].state_dict()
    state: dict[int, Any] = {}
    groups: _Groups = []
    named: dict[str, list[Any]] = {}
    added: dict[str, list[Any]] = {}
    for leaf in inner:
        saved = leaf.state_dict()
        start = sum(len(group["params"]) for group in groups)
        for index, kept in saved.pop("state").items():
            if isinstance(index, int):
                state[start + index] = kept
            else:  # MADGRAD counts its steps there
                named.setdefault(index, []).append(kept)
        for group in saved.pop("param_groups"):
            groups.append({**group, "params": [start + i for i in group["params"]]})
        for key, value in saved.items():
            added.setdefault(key, []).append(value)
    own, further = _of_all(named, len(inner)), _of_all(added, len(inner))
    return {"state": {**state, **own}, "param_groups": _merged(groups), **further}


def _of_all(kept: dict[str, list[Any]], num: int) -> dict[str, Any]:
    """Return what optimizers keep once each.

    Raises:
        StateError: They have different values.

    """
    for key, values in kept.items():
        if len(values) < num or len({repr(_exact(value)) for value in values}) > 1:
            what = (
                f"the native form has one {key}, and the optimizers of the container"
                " have several values: export them one by one, or as nested"
            )
            raise StateError([Problem(what, "", StateError)])
    return {key: values[0] for key, values in kept.items()}


def _exact(value: Any) -> Any:
    """Return what shows a value in full; a tensor's own text is rounded."""
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_exact, value)]
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return (str(value.dtype), value.tolist()) if isinstance(value, Tensor) else value


def _merged(groups: _Groups) -> _Groups:
    """Make one of the groups whose settings are equal."""
    found: dict[str, dict[str, Any]] = {}
    lists = ("params", "param_names")
    for group in groups:
        settings = {key: value for key, value in group.items() if key not in lists}
        mark = repr(sorted((key, _exact(value)) for key, value in settings.items()))
        if mark not in found:
            found[mark] = {**group, **{k: [] for k in lists if k in group}}
        for key in lists:
            if key in group:
                found[mark][key] += group[key]
    return list(found.values())
