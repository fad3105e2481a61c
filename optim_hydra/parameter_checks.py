"""Check whether a class, and clipping, can do with the parameters that were given."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from optim_hydra.argument_values import fit_value
from optim_hydra.clipping import SPARSE
from optim_hydra.errors import Problems, UnknownKeyError, nearest
from optim_hydra.needs import need_of
from optim_hydra.node import plain
from optim_hydra.parameters import Parameters
from optim_hydra.rules import Refused
from optim_hydra.schema import RULES
from optim_hydra.signature import Argument, signature_of

__all__ = ["check_parameters"]

_GROUP_KEYS = ("params", "name", "initial_lr")


def check_parameters(
    parameters: Parameters, cls: type, problems: Problems, *, clips: bool
) -> None:
    """Note what the class, or clipping, can't do with these parameters.

    The values of group dicts are checked and made plain in place.
    """
    if not parameters.groups:
        frozen = parameters.num_frozen
        what = f"nothing to train in {parameters.source}: {frozen} parameters"
        if frozen:
            what += f", all {frozen} frozen: set requires_grad before building"
        problems.add(what)
        return
    for index, group in enumerate(parameters.groups):
        _check_group(group, f"parameter group {index}", cls, problems)
    lazy = [n for n, p in parameters.named() if is_lazy(p)]
    if lazy:
        what = f"the shapes of {', '.join(lazy[:5])} are not known yet: run the module"
        problems.add(f"{what} once before building its optimizer")
    elif need_of(cls).matrices_only:
        _check_matrices(parameters, cls, problems)
    if clips and (parameters.has_sparse or need_of(cls).protocol == "sparse_gradients"):
        problems.add(SPARSE, "clip_grad")


def _check_group(
    group: dict[str, Any], where: str, cls: type, problems: Problems
) -> None:
    arguments: dict[str, Argument] = {}
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
            if key in RULES and not isinstance(value, (list, tuple)):
                value = RULES[key](value)
            group[key] = fit_value(value, arguments[key])
        except Refused as refused:
            problems.add(f"{where}, {key}{refused.index}: {refused}")


def _check_matrices(parameters: Parameters, cls: type, problems: Problems) -> None:
    bad = [(name, tuple(p.shape)) for name, p in parameters.named() if p.ndim != 2]  # noqa: PLR2004
    if not bad:
        return
    listed = ", ".join(f"{name} {shape}" for name, shape in bad[:5])
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""  # noqa: PLR2004
    what = (
        f"{cls.__name__} takes matrices (2-D parameters) only, not {listed}{more}"
        f" ({len(bad)} in all); give it the matrices, [(n, p) for n, p in"
        " module.named_parameters() if p.ndim == 2], and the others to a second"
        " optimizer"
    )
    problems.add(what, "optimizer")
