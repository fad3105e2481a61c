"""Check whether a class, and clipping, can do with the parameters that were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, distributed
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from optim_hydra.argument_values import fit_value
from optim_hydra.errors import Problems, UnknownKeyError, join_key, nearest
from optim_hydra.field_checks import CHECKS
from optim_hydra.groups import ClassGroups
from optim_hydra.needs import need_of
from optim_hydra.node import plain
from optim_hydra.parameters import Parameters
from optim_hydra.signature import Argument, signature_of
from optim_hydra.value_checks import Refused

__all__ = [
    "check_classes",
    "check_given_groups",
    "check_matrices",
    "check_places",
    "check_trainable",
]

_GROUP_KEYS = ("params", "name", "initial_lr")
_SHOWN = 5


def check_trainable(
    parameters: Parameters, num_frozen: int, problems: Problems
) -> None:
    """Note that nothing is left to train, or that shapes are not known yet."""
    total = sum(len(group["params"]) for group in parameters.groups)
    if total == num_frozen:
        frozen = parameters.num_frozen + num_frozen
        what = f"nothing to train in {parameters.source}: {frozen} parameters"
        if frozen:
            by_rule = f", {num_frozen} of them by a freeze rule" if num_frozen else ""
            what += f", all {frozen} frozen{by_rule}"
            what += ": set requires_grad before building" if not num_frozen else ""
        problems.add(what)
    lazy = [name for name, p in parameters.named() if is_lazy(p)]
    if lazy:
        names = ", ".join(lazy[:_SHOWN])
        what = f"the shapes of {names} are not known yet: run the module"
        problems.add(f"{what} once before building its optimizer")


def check_given_groups(parameters: Parameters, cls: type, problems: Problems) -> None:
    """Check the values of group dicts that the program gave, and make them plain."""
    for index, group in enumerate(parameters.groups):
        _check_group(group, f"parameter group {index}", cls, problems)


def _check_group(
    group: dict[str, Any], where: str, cls: type, problems: Problems
) -> None:
    further = need_of(cls).group_keys
    arguments = {name: Argument(name, value, "") for name, value in further.items()}
    for base in reversed(cls.__mro__):
        arguments |= signature_of(base).arguments if issubclass(base, Optimizer) else {}
    for key in [key for key in group if key not in _GROUP_KEYS]:
        if key not in arguments:
            near = nearest(str(key), [*arguments, *_GROUP_KEYS])
            what = (
                f"{where} has the key {key}, which {cls.__name__} does not take{near}"
            )
            if not near:
                what += f"; if it reads it: declare_arguments({cls.__name__}, '{key}')"
            problems.add(what, "", UnknownKeyError)
            continue
        if isinstance(group[key], Tensor):
            continue  # a rate that a compiled step can read
        try:
            value = plain(group[key])
            is_list = isinstance(value, (list, tuple))
            if key in CHECKS and (key == "betas" or not is_list):
                value = CHECKS[key](value)
            group[key] = fit_value(value, arguments[key])
        except Refused as refused:
            problems.add(f"{where}, {key}{refused.index}: {refused}")


def check_classes(classes: Sequence[ClassGroups], problems: Problems) -> None:
    """Note what a class can't do with the parameters and groups that it gets."""
    for groups in classes:
        need, name = need_of(groups.cls), groups.cls.__name__
        if need.matrices_only:
            key = join_key(groups.variants[0].at, "optimizer")
            check_matrices(groups.cls, groups.named(), problems, key)
        if need.one_group and len(groups.groups) > 1:
            what = f"{name} takes one group of parameters, not {len(groups.groups)}"
            problems.add(f"{what}: choose another class for them", "param_groups")
        rates = {float(group.values.get("lr", 0.0)) for group in groups.groups}
        differing = rates if need.ignores_group_lr else rates - {0.0}
        if (need.one_lr or need.ignores_group_lr) and len(differing) > 1:
            listed = ", ".join(f"{rate:g}" for rate in sorted(rates))
            what = f"{name} wants one lr for all of its parameters, not {listed}"
            problems.add(f"{what}: set one in the node", "param_groups")


def check_places(
    cls: type, named: Sequence[tuple[str, Tensor]], problems: Problems
) -> None:
    """Note what a class lacks here: a device, a process group, equal shapes."""
    need, name = need_of(cls), cls.__name__
    if need.accelerator and any(tensor.device.type == "cpu" for _, tensor in named):
        what = f"{name} works on an accelerator only, and parameters are on the CPU:"
        what += " move the model first, model.to('cuda'), or choose another class"
        problems.add(what, "optimizer")
    started = distributed.is_available() and distributed.is_initialized()
    if need.process_group and not started:
        what = f"{name} works in a process group: call"
        problems.add(f"{what} torch.distributed.init_process_group first", "optimizer")


def check_matrices(
    cls: type,
    named: Sequence[tuple[str, Tensor]],
    problems: Problems,
    key: str = "optimizer",
) -> None:
    """Note the parameters that are no matrices, for a class that takes nothing else."""
    bad = [(name, tuple(p.shape)) for name, p in named if p.ndim != 2]  # noqa: PLR2004
    if not bad:
        return
    listed = ", ".join(f"{name} {shape}" for name, shape in bad[:_SHOWN])
    more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    what = (
        f"{cls.__name__} takes matrices (2-D parameters) only, not {listed}{more}"
        f" ({len(bad)} in all); choose optim@MODULE.optim=muon, or AdamW with a rule"
        f" for the matrices: param_groups=[{{ndim: 2, optimizer: {cls.__name__}}}]"
    )
    problems.add(what, key)
