"""Group the parameters of one node, check them, and construct its optimizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, distributed, nn
from torch.optim import Optimizer

from optim_hydra.arguments import Planned
from optim_hydra.calls import Caller
from optim_hydra.clipping import SPARSE
from optim_hydra.compile_checks import check_compiled
from optim_hydra.construct import construct
from optim_hydra.errors import Problems
from optim_hydra.given import EXTRA, FIELDS
from optim_hydra.group_records import record_groups
from optim_hydra.groups import ClassGroups, make_groups, mesh_of
from optim_hydra.implementation import with_fastest
from optim_hydra.in_backward_checks import check_in_backward
from optim_hydra.needs import need_of
from optim_hydra.parameter_checks import (
    check_classes,
    check_given_groups,
    check_matrices,
    check_places,
    check_trainable,
)
from optim_hydra.parameters import Parameters, Roots
from optim_hydra.placing import place_parameters
from optim_hydra.planning import Plan
from optim_hydra.signature import signature_of
from optim_hydra.structure import CLIP_FLATTENED, is_flattened

__all__ = ["Assembly", "assemble"]

_SHOWN = 3


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
        """The classes that are used, the wrappers last."""
        used = [groups.cls for groups in self.groups] or [self.plan.node.cls]
        return [*used, *(wrapper.cls for wrapper in self.plan.wrappers)]

    def called(self) -> list[tuple[type[Optimizer], dict[str, Any]]]:
        """Return each class with its keyword arguments, wrappers left out."""
        called = [(groups.cls, groups.arguments()) for groups in self.groups]
        return called or [(self.plan.node.cls, self.plan.node.arguments.kwargs)]

    def tried(self) -> list[tuple[type[Optimizer], dict[str, Any]]]:
        """Return each class with the arguments of its groups, as far as they differ.

        Rates, decays, betas and eps aside.
        """
        found: dict[Any, tuple[type[Optimizer], dict[str, Any]]] = {}
        for groups in self.groups:
            for group in groups.groups:
                given = {**group.values, **groups.switches}
                other = {k: repr(v) for k, v in given.items() if k not in FIELDS}
                key = groups.cls, tuple(sorted(other.items()))
                found.setdefault(key, (groups.cls, given))
        return list(found.values()) or self.called()

    def construct(self, at: str) -> list[Optimizer]:
        """Return one new optimizer for each class, wrapped where the node says so.

        Raises:
            ConfigError: A class refuses its arguments.

        """
        roots, wrappers = self.parameters.roots, self.plan.wrappers
        caller = Caller(
            at,
            module=roots[0][1] if len(roots) == 1 else None,
            wrapper=next((w for w in wrappers if not w.takes_instance), None),
        )
        if self.groups:
            named = self.parameters.are_named and not self._wants_bare
            built = [construct(groups, caller, named=named) for groups in self.groups]
        else:
            arguments = self.plan.node.arguments
            planned = Planned(arguments.kwargs, arguments.keys, ())
            cls = self.plan.node.cls
            built = [caller.call_wrapped(cls, self._source(), planned)]
        for wrapper in wrappers:
            if wrapper.takes_instance and wrapper.arguments is not None:
                (inner,) = built
                built = [caller.wrap(wrapper, wrapper.arguments, inner)]
        for optimizer, groups in zip(built, self.groups, strict=False):
            record_groups(optimizer, groups)
        self._check_held(built, at)
        return built

    def _check_held(self, built: list[Optimizer], at: str) -> None:
        """Refuse a class that drops parameters, which would not be trained.

        They are counted: some classes hold copies in the place of parameters.
        """
        frozen = set(map(id, self.to_freeze))
        given = {id(p): name for name, p in self.parameters.named()}
        given = {key: name for key, name in given.items() if key not in frozen}
        groups = [group for optimizer in built for group in optimizer.param_groups]
        held = {id(parameter) for group in groups for parameter in group["params"]}
        if len(held) >= len(given):
            return
        lost = [name for key, name in given.items() if key not in held]
        names = " and ".join(type(optimizer).__name__ for optimizer in built)
        listed = ", ".join(lost[:_SHOWN])
        if len(lost) > _SHOWN:
            listed += f" and {len(lost) - _SHOWN} more"
        problems = Problems(at)
        what = f"{names} holds {len(held)} of the {len(given)} parameters that it was"
        problems.add(f"{what} given, not {listed}: choose another class", "optimizer")
        problems.raise_if_any()

    def _source(self) -> Any:
        """Return what the class's first argument takes."""
        if need_of(self.plan.node.cls).takes_model:
            return self.parameters.roots[0][1]
        if self._wants_bare and not self.parameters.are_grouped:
            return [parameter for _, parameter in self.parameters.named()]
        return self.parameters.for_optimizer()

    @property
    def _wants_bare(self) -> bool:
        return any(need_of(cls).bare_parameters for cls in self.classes)

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
    wants_groups = plan.has_groups or _is_mixed(parameters)
    if wants_groups and parameters.groups:
        grouped = make_groups(place_parameters(parameters, plan, problems, roots), plan)
        groups, to_freeze = grouped.classes, grouped.to_freeze
        check_classes(groups, problems)
    elif need_of(plan.node.cls).matrices_only:
        check_matrices(plan.node.cls, list(parameters.named()), problems)
    check_given_groups(parameters, plan.node.cls, problems)
    check_trainable(parameters, len(to_freeze), problems)
    plan = with_fastest(plan, groups, parameters)
    assembly = Assembly(parameters, plan, groups, to_freeze)
    _check_needs(assembly, problems)
    _check_wrappers(assembly, problems)
    if any(need_of(cls).takes_model for cls in assembly.classes):
        _check_model(assembly, problems)
    if plan.optim.clip_grad is not None:
        needs = [need_of(cls).protocol for cls in assembly.classes]
        if is_flattened(parameters.roots):
            problems.add(CLIP_FLATTENED, "clip_grad")
        if parameters.has_sparse(to_freeze) or "sparse_gradients" in needs:
            problems.add(SPARSE, "clip_grad")
        if "fused_backward" in needs:
            what = "clip_grad acts before a step, and there is none with fused_backward"
            problems.add(f"{what}: set clip_grad=null", "clip_grad")
    if not problems.found:
        _check_runtime(assembly, problems)
    return assembly


def _check_runtime(assembly: Assembly, problems: Problems) -> None:
    """Try out what `compile_step` and `step_in_backward` ask of the classes."""
    optim, parameters = assembly.plan.optim, assembly.parameters
    wrappers = [wrapper.cls for wrapper in assembly.plan.wrappers]
    tensors = [tensor for _, tensor in parameters.named()]
    if optim.compile_step:
        check_compiled(assembly.tried(), wrappers, tensors[0].device, problems)
    if optim.step_in_backward:
        roots = [root for _, root in parameters.roots]
        check_in_backward(assembly.tried(), wrappers, roots, tensors, problems)


def _check_needs(assembly: Assembly, problems: Problems) -> None:
    """Note what the classes lack: places, names, a flag in their groups."""
    parameters, plan = assembly.parameters, assembly.plan
    named = {groups.cls: groups.named() for groups in assembly.groups}
    for cls in assembly.classes:
        check_places(cls, named.get(cls) or list(parameters.named()), problems)
        need, name = need_of(cls), cls.__name__
        if need.named_parameters and not parameters.are_named:
            what = f"{name} goes by the names of the parameters: give the module,"
            problems.add(f"{what} or model.named_parameters()", "optimizer")
        variants = [plan.node, *plan.rules.values()]
        said = [v for v in variants if v.cls is cls and need.flag in v.arguments.keys]
        given = [group for group in parameters.groups if need.flag in group]
        if need.flag and not said and not given:
            what = f"{name} has to be told its matrices by {need.flag}: add the rule"
            what += f" {{role: hidden, ndim: 2, {EXTRA}: {{{need.flag}: true}}}}; the"
            problems.add(f"{what} others get false", "param_groups")


def _is_mixed(parameters: Parameters) -> bool:
    """Whether plain and sharded parameters come together; see `groups`."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return False
    found = parameters.found
    meshes = {mesh_of(entry) for entry in (found.entries if found else ())}
    return len(meshes) > 1


def _check_wrappers(assembly: Assembly, problems: Problems) -> None:
    wrappers = assembly.plan.wrappers
    by_class = [w for w in wrappers if not w.takes_instance]
    if not wrappers or (len(assembly.groups) <= 1 and by_class in ([], [wrappers[0]])):
        return
    names = ", ".join(wrapper.cls.__name__ for wrapper in wrappers)
    what = f"{names} wraps one optimizer class, and the rules name several"
    if len(assembly.groups) <= 1:
        what = f"{names} can't be put around each other: keep one of them"
    problems.add(what, "optimizer")


def _check_model(assembly: Assembly, problems: Problems) -> None:
    (name, *_) = [c.__name__ for c in assembly.classes if need_of(c).takes_model]
    what = ""
    takes_groups = any("params" in signature_of(c).arguments for c in assembly.classes)
    if assembly.groups and not takes_groups:
        what = f"{name} takes the whole model and makes its own groups: choose another"
        what += " class for param_groups, no_decay and layer_decay"
    elif len(assembly.parameters.roots) != 1:
        what = f"{name} takes one module: build_optimizer(module, config)"
    if what:
        problems.add(what, "optimizer")
