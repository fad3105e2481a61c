"""Check every optimizer node of an app's config, and say what would be built."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn
from torch.optim import Optimizer

from optim_hydra.builder import build_from_node
from optim_hydra.checking import read_config
from optim_hydra.cli.composing import compose_file, find_nodes
from optim_hydra.cli.describing import kept_by_the_loop, public_path
from optim_hydra.cli.foreign_nodes import ForeignNode, read_foreign
from optim_hydra.cli.models import make_model, models_by_node
from optim_hydra.cli.rates import Curve, curves_of, lacks_steps
from optim_hydra.cli.remarks import remarks_on
from optim_hydra.decay_meaning import decay_meaning
from optim_hydra.errors import (
    ConfigError,
    OptimHydraWarning,
    Problem,
    Problems,
    RenamedKeyWarning,
)
from optim_hydra.needs import PROTOCOLS, need_of
from optim_hydra.node import Node
from optim_hydra.planning import Plan, plan_node
from optim_hydra.references import hide, hide_in
from optim_hydra.report import AssignmentReport, assignment_report
from optim_hydra.state_memory import StateMemory, measure_state
from optim_hydra.validation import validate

__all__ = ["Checked", "CheckedNode", "check_config", "check_node"]

NEEDS_STEPS = "its schedule needs the number of steps: --steps, or total_training_steps"


@dataclass
class CheckedNode:
    """What is known of one node."""

    key: str
    classes: list[str] = field(default_factory=list)
    """Dotted path of each class, with its arguments and what its decay means."""
    model: str = ""
    report: AssignmentReport | None = None
    memory: StateMemory | None = None
    curves: list[Curve] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    """What the training loop has to keep."""
    remarks: list[str] = field(default_factory=list)
    """What the library chose, and what the class does not need."""
    notes: list[str] = field(default_factory=list)
    optimizer: Optimizer | None = None


@dataclass
class Checked:
    """What is known of a config, and everything that is wrong with it."""

    nodes: list[CheckedNode]
    others: dict[str, ForeignNode]
    world_size: int
    problems: list[Problem]
    warnings: list[str]


def check_config(
    config: Path,
    overrides: Sequence[str],
    *,
    models: Sequence[str] = (),
    world_size: int = 1,
    steps: int | None = None,
) -> Checked:
    """Compose a config and check its nodes, all problems at once.

    Args:
        config: Path of the primary config.
        overrides: As on the app's command line.
        models: For whom to build on the meta device, see `models_by_node`.
        world_size: Ranks that FSDP2 shards over.
        steps: Optimizer steps in all, where the config leaves it to the trainer.

    Raises:
        OptimHydraError: Nothing could be checked: no file, no node, no model.

    """
    # What models and classes print is no part of what is told here.
    with (
        contextlib.redirect_stdout(sys.stderr),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        composed = compose_file(config, overrides)
        found = find_nodes(composed)
        with contextlib.suppress(ConfigError):
            validate(composed)  # for its warnings; what is wrong comes below
        paths = models_by_node(models, found.ours)
        nodes, problems = [], []
        for at, node in found.ours.items():
            own = Problems(at)
            model, path = None, paths.get(at, "")
            if path:
                model = make_model(path)
            checked = check_node(node, own, model, world_size=world_size, steps=steps)
            checked.model = path
            nodes.append(checked)
            problems += own.found
        others = {at: read_foreign(items, at) for at, items in found.others.items()}
    told = _told(caught)
    if steps and not nodes:
        told.append("--steps is for nodes of this library, and the config has none")
    return Checked(nodes, others, world_size, problems, told)


def check_node(
    node: Node,
    problems: Problems,
    model: nn.Module | None = None,
    *,
    world_size: int = 1,
    steps: int | None = None,
) -> CheckedNode:
    """Check one node, and build it where there is a model on the meta device."""
    checked = CheckedNode(node.at)
    plan = plan_node(node, problems, allow_open=model is None)
    problems.found = hide_in(problems.found, node.references)
    if plan is None or problems.found:
        return checked
    texts = [hide(text, node.references) for text in _classes(plan)]
    checked.classes = list(dict.fromkeys(texts))
    checked.needs = list(dict.fromkeys(_needs(plan)))
    checked.remarks = remarks_on(plan)
    if model is not None:
        try:
            checked.optimizer = build_from_node(model, node, frozenset(PROTOCOLS))
        except ConfigError as error:
            problems.found += error.problems
            return checked
        checked.report = assignment_report(checked.optimizer)
        checked.remarks = remarks_on(plan, model, checked.optimizer)
    checked.curves = _curves(node, checked, steps, problems)
    if checked.optimizer is not None:
        checked.memory = measure_state(checked.optimizer, world_size)
    return checked


def _curves(
    node: Node, checked: CheckedNode, steps: int | None, problems: Problems
) -> list[Curve]:
    if node.target:
        return []
    optim = read_config(node, Problems(node.at), allow_open=True)
    total = optim.total_training_steps
    total = steps or -1 if total == -1 else total
    try:
        return curves_of(optim, total, node.at, checked.optimizer)
    except ConfigError as error:
        if lacks_steps(error, total):
            checked.notes.append(NEEDS_STEPS)
        else:
            problems.found += error.problems
    return []


def _classes(plan: Plan) -> list[str]:
    texts = []
    for variant in (plan.node, *plan.rules.values()):
        cls, kwargs = variant.cls, variant.arguments.kwargs
        meaning = decay_meaning(cls, kwargs)
        given = ", ".join(f"{name}={value!r}" for name, value in kwargs.items())
        text = f"{public_path(cls)}({given})"
        texts.append(text + (f", decay is {meaning}" if meaning else ""))
    texts += [f"wrapped in {public_path(w.cls)}" for w in plan.wrappers]
    return texts


def _needs(plan: Plan) -> list[str]:
    classes = [variant.cls for variant in (plan.node, *plan.rules.values())]
    classes += [wrapper.cls for wrapper in plan.wrappers]
    needs = [(cls.__name__, need_of(cls)) for cls in classes]
    return [f"{n} needs {kept_by_the_loop(need)}" for n, need in needs if need.protocol]


def _told(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    ours = (OptimHydraWarning, RenamedKeyWarning)
    texts = [str(each.message) for each in caught if issubclass(each.category, ours)]
    return list(dict.fromkeys(texts))
