"""Group the parameters of one node, check them, and construct its optimizers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.arguments import Planned
from optim_hydra.clipping import SPARSE
from optim_hydra.construct import call_class, construct
from optim_hydra.errors import Problems
from optim_hydra.group_records import record_groups
from optim_hydra.groups import ClassGroups, make_groups
from optim_hydra.needs import need_of
from optim_hydra.parameter_checks import (
    check_classes,
    check_given_groups,
    check_matrices,
    check_trainable,
)
from optim_hydra.parameters import Parameters, Roots
from optim_hydra.placing import place_parameters
from optim_hydra.planning import Plan

__all__ = ["Assembly", "assemble"]


@dataclass(frozen=True)
class Assembly:
    """Everything that is needed to construct, checked; nothing is changed yet."""

    parameters: Parameters
    plan: Plan
    groups: list[ClassGroups]
    """One for each class; nothing where all parameters share the node's values."""
    to_freeze: list[Tensor]

    @property
    def classes(self) -> list[type[Optimizer]]:
        """The classes that are used."""
        return [groups.cls for groups in self.groups] or [self.plan.node.cls]

    def construct(self, at: str) -> list[Optimizer]:
        """Return one new optimizer for each class.

        Raises:
            ConfigError: A class refuses its arguments.

        """
        if not self.groups:
            arguments = self.plan.node.arguments
            planned = Planned(arguments.kwargs, arguments.keys, ())
            source = self.parameters.for_optimizer()
            return [call_class(self.plan.node.cls, source, planned, at)]
        named = self.parameters.are_named
        built = [construct(groups, at, named=named) for groups in self.groups]
        for optimizer, groups in zip(built, self.groups, strict=True):
            record_groups(optimizer, groups)
        return built

    def freeze(self) -> None:
        """Switch requires_grad off where a rule says so."""
        for parameter in self.to_freeze:
            parameter.requires_grad_(False)  # noqa: FBT003 - torch's own signature
            parameter.grad = None


def assemble(
    parameters: Parameters,
    plan: Plan,
    problems: Problems,
    *,
    whole: nn.Module | None = None,
) -> Assembly:
    """Group the parameters as the plan says, and note everything that does not fit."""
    roots: Roots = () if whole is None else (("", whole),)
    groups: list[ClassGroups] = []
    to_freeze: list[Tensor] = []
    if plan.has_groups and parameters.groups:
        grouped = make_groups(place_parameters(parameters, plan, problems, roots), plan)
        groups, to_freeze = grouped.classes, grouped.to_freeze
        check_classes(groups, problems)
    elif need_of(plan.node.cls).matrices_only:
        check_matrices(plan.node.cls, list(parameters.named()), problems)
    check_given_groups(parameters, plan.node.cls, problems)
    check_trainable(parameters, len(to_freeze), problems)
    assembly = Assembly(parameters, plan, groups, to_freeze)
    if plan.optim.clip_grad is not None:
        needs = [need_of(cls).protocol for cls in assembly.classes]
        if parameters.has_sparse or "sparse_gradients" in needs:
            problems.add(SPARSE, "clip_grad")
    return assembly
