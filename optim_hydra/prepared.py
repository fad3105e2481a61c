"""Prepare the optimizers of a node, then build them: what can fail comes first."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.optim import Optimizer

from optim_hydra.assembly import Assembly, assemble
from optim_hydra.clipping import clip_before_step
from optim_hydra.compiled_step import compile_step
from optim_hydra.container import OptimizersContainer
from optim_hydra.decay_meaning import decay_meaning
from optim_hydra.declared import path_of
from optim_hydra.errors import OptimHydraWarning, Problems, nearest
from optim_hydra.implementation import told_flags
from optim_hydra.journal import JOURNAL
from optim_hydra.needs import PROTOCOLS, need_of
from optim_hydra.node import Node
from optim_hydra.parameters import Parameters
from optim_hydra.plain_load import refuse_names_in_plain_load
from optim_hydra.planning import plan_node
from optim_hydra.references import hide, hiding
from optim_hydra.report import assignment_report
from optim_hydra.state_slots import set_policy
from optim_hydra.step_in_backward import refuse_scaled_gradients, step_in_backward
from optim_hydra.watch import watch

__all__ = ["Prepared", "prepare"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A node with its parameters, checked and grouped."""

    assembly: Assembly
    at: str
    provides: frozenset[str]
    references: Mapping[str, str]
    """Text that a resolver gave -> its reference, for the log."""

    def construct(self) -> Optimizer:
        """Make the optimizer; nothing outside of it is changed.

        Raises:
            ConfigError: A class refuses its arguments.

        """
        with hiding(self.references):
            built = self.assembly.construct(self.at)
        if len(built) == 1:
            return built[0]
        names = [type(optimizer).__name__ for optimizer in built]
        if len(set(names)) < len(names):
            names = [f"{type(o).__module__}.{type(o).__name__}" for o in built]
        named = dict(zip(names, built, strict=True))
        node_cls = self.assembly.plan.node.cls
        own = [name for name, optimizer in named.items() if type(optimizer) is node_cls]
        return OptimizersContainer.of(named, extends=own[0] if own else None)

    def finish(self, optimizer: Optimizer) -> Optimizer:
        """Freeze, watch, clip and tell."""
        self.assembly.freeze()
        parameters = self.assembly.parameters
        if parameters.found is not None:
            watch(optimizer, parameters.roots, parameters.found)
        optim = self.assembly.plan.optim
        if optim.clip_grad is not None:
            clip_before_step(optimizer, optim.clip_grad)
        set_policy(optimizer, optim.on_resume, self.at)
        self._warn()
        for inner in getattr(optimizer, "optimizers", [optimizer]):
            self._set_mode(inner)
            refuse_names_in_plain_load(inner)
            if optim.compile_step:
                compile_step(inner)
            if optim.step_in_backward:
                step_in_backward(inner, self.at)
        if optim.step_in_backward and hasattr(optimizer, "optimizers"):
            refuse_scaled_gradients(optimizer, self.at)
        if log.isEnabledFor(logging.INFO):  # a report walks the modules once more
            report = assignment_report(optimizer)
            log.info("%s: %s\n  %s", self.at or "optim", self._arguments(), report)
        JOURNAL.built.add(self.at)
        if JOURNAL.is_describing:
            JOURNAL.described[self.at or "optim"] = self._described(optimizer)
        return optimizer

    def _arguments(self) -> str:
        """Say what each class was called with."""
        called = [f"{cls.__name__} {kwargs}" for cls, kwargs in self.assembly.called()]
        if self.assembly.plan.optim.implementation == "fastest":
            told = [told_flags(cls, kwargs) for cls, kwargs in self.assembly.called()]
            called = [
                f"{text}, the fastest implementation is {which}"
                for text, which in zip(called, told, strict=True)
            ]
        optim = self.assembly.plan.optim
        called += ["compiled"] * optim.compile_step
        called += ["updating in backward"] * optim.step_in_backward
        return hide(", ".join(called), self.references)

    def _described(self, optimizer: Optimizer) -> dict[str, Any]:
        """Return classes, arguments and groups as plain data."""
        rows = assignment_report(optimizer).rows
        classes = [
            {
                "class": path_of(cls),
                "arguments": {n: self._shown(v) for n, v in kwargs.items()},
                "weight_decay_is": decay_meaning(cls, kwargs),
            }
            for cls, kwargs in self.assembly.called()
        ]
        groups = [{k: v for k, v in row.items() if k != "names"} for row in rows]
        unused = self.assembly.plan.unused_keys if self.at else []
        return {"classes": classes, "groups": groups, "unused": unused}

    def _shown(self, value: Any) -> Any:
        return hide(value, self.references) if isinstance(value, str) else value

    def _warn(self) -> None:
        """Warn about what was dropped, since strict is false."""
        plan = self.assembly.plan
        for variant in (plan.node, *plan.rules.values()):
            for sentence in variant.arguments.dropped:
                warnings.warn(sentence, OptimHydraWarning, stacklevel=5)
                # Python shows a warning once; each job has its own log.
                log.warning(sentence)

    def _set_mode(self, optimizer: Optimizer) -> None:
        need, name = need_of(type(optimizer)), type(optimizer).__name__
        if need.only_warn:
            if need.protocol == "train_eval_modes":
                optimizer.train()  # type: ignore[attr-defined]
            if need.protocol not in self.provides:
                text = "%s: %s expects the training loop to call %s"
                log.warning(text, self.at or "optim", name, PROTOCOLS[need.protocol])


def prepare(
    parameters: Parameters,
    node: Node,
    provides: frozenset[str],
    problems: Problems,
    *,
    whole: nn.Module | None = None,
) -> Prepared | None:
    """Plan a node and group its parameters; note everything that does not fit.

    None where the class itself can't be had.
    """
    plan = plan_node(node, problems)
    if plan is None:
        return None
    assembly = assemble(parameters, plan, problems, whole=whole)
    for unknown in sorted(provides - PROTOCOLS.keys()):
        near = nearest(unknown, PROTOCOLS)
        what = f"provides={unknown!r} is none of {', '.join(PROTOCOLS)}{near}"
        problems.add(what)
    for cls in assembly.classes:
        _check_protocol(cls, provides, problems)
    return Prepared(assembly, node.at, provides, node.references)


def _check_protocol(
    cls: type[Optimizer], provides: frozenset[str], problems: Problems
) -> None:
    need = need_of(cls)
    if need.protocol and need.protocol not in provides and not need.only_warn:
        what = (
            f"{cls.__name__} needs {PROTOCOLS[need.protocol]}; where the training loop"
            f" does this, say provides=[{need.protocol!r}] to build_optimizer"
        )
        problems.add(what, "optimizer")
