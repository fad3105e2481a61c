"""Make one optimizer of a class for each part of a model, as torchtitan does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from torch import nn
from torch.optim import Optimizer

from optim_hydra.arguments import plan_arguments
from optim_hydra.assembly import assemble
from optim_hydra.errors import Problems, WrongObjectError
from optim_hydra.given import given_by_plain_node
from optim_hydra.parameters import read_each
from optim_hydra.planning import Plan, Variant
from optim_hydra.schema import config_of
from optim_hydra.survey import Survey
from optim_hydra.watch import watch

__all__ = ["build_parts"]

T = TypeVar("T", bound=Optimizer)


def build_parts(
    parts: Sequence[nn.Module], cls: type[T], kwargs: Mapping[str, Any]
) -> dict[str, T]:
    """Make one optimizer for each part, all checked before the first is made."""
    given: Any = cls
    if not (isinstance(given, type) and issubclass(given, Optimizer)):
        msg = f"optimizer_cls is {given!r}, not an optimizer class such as AdamW"
        raise WrongObjectError(msg)
    modules: list[Any] = [parts] if isinstance(parts, nn.Module) else []
    if isinstance(parts, Iterable) and not modules:
        modules = list(parts)
    further: object = kwargs
    if not isinstance(further, Mapping):
        msg = f"optimizer_kwargs is of type {type(further).__name__}, not a mapping"
        raise WrongObjectError(msg)
    if not modules or not all(isinstance(part, nn.Module) for part in modules):
        msg = "model_parts holds no modules: give a list of them, [model]"
        raise WrongObjectError(msg)
    problems = Problems("optimizer_kwargs")
    arguments = plan_arguments(cls, given_by_plain_node(kwargs), problems, strict=True)
    plan = Plan(config_of({"layer_decay": None}), Variant(cls, arguments), {})
    assemblies = {}
    for index, parameters in read_each(modules).items():
        own = Problems(f"model_parts[{index}]")
        assemblies[index] = assemble(parameters, plan, own)
        problems.found += own.found
    problems.raise_if_any()
    named: dict[str, Any] = {}
    for index, assembly in assemblies.items():
        (named[str(index)],) = assembly.construct(f"model_parts[{index}]")
        parameters = assembly.parameters
        watch(named[str(index)], parameters.roots, parameters.found or Survey([]))
    return named
