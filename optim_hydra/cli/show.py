"""Own `optim-hydra show`: what one class takes, needs and keeps, and how to begin."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch.optim import Optimizer

from optim_hydra.cli.catalogue import catalogue, quiet, version_of
from optim_hydra.cli.describing import (
    SIDE,
    needs_of,
    starting_node,
    summary_of,
    tried,
)
from optim_hydra.decay_meaning import decay_meaning
from optim_hydra.errors import Problems, WrongObjectError, nearest
from optim_hydra.given import FIELDS
from optim_hydra.missing import DEFAULT_IMPL
from optim_hydra.needs import ignored_by
from optim_hydra.signature import Argument, signature_of
from optim_hydra.state_memory import StateMemory, measure_state
from optim_hydra.targets import load_class, resolve_target
from optim_hydra.wrapping import EXTRA, find_wrapper

__all__ = ["Shown", "describe", "show_target"]

_DECAY = {
    "decoupled": "weights shrink by lr * weight_decay each step",
    "L2": "weight_decay * weight is added to the gradient",
    "": "the class says nothing that this library can read",
}
_SWITCHES = ("foreach", "fused")
# More columns than any table of arguments has.
_UNFOLDED = 10_000


@dataclass(frozen=True)
class Shown:
    """Everything that is said of one class."""

    impl: str
    name: str
    cls: type[Optimizer]
    node: dict[str, Any]
    """To start with."""
    memory: StateMemory | None
    failed: str
    """Why the node can't be built as it is."""


def show_target(target: str, console: Console, *, as_json: bool) -> None:
    """Print what is known of a class.

    Args:
        target: A dotted path, or a class's name.
        console: Where to print.
        as_json: As JSON.

    Raises:
        ConfigError: The class can't be had.
        WrongObjectError: Several packages have one of that name.

    """
    shown = describe(target)
    if as_json:
        console.out(json.dumps(_data(shown), indent=2), highlight=False)
        return
    version = version_of(shown.impl)
    console.print(Text(f"{shown.impl}.{shown.name}", style="bold"), version)
    for line in _lines(shown):
        console.print(Text(f"  {line}"), soft_wrap=True)
    _print_arguments(shown.cls, console)
    console.print("to start with:")
    console.out(yaml_of(shown), highlight=False, end="")


def describe(target: str) -> Shown:
    """Find a class, build it once for one matrix, and tell what was seen.

    Raises:
        ConfigError: The class can't be had.
        WrongObjectError: Several packages have one of that name.

    """
    problems = Problems("")
    found = resolve_target(DEFAULT_IMPL, target, problems)
    problems.raise_if_any()
    cls = None
    with quiet():
        cls = None if found is None else load_class(found, problems)
    if cls is None and "." not in target:
        return describe(_path_of(target))
    problems.raise_if_any()
    if found is None or cls is None:
        raise problems.error()
    with quiet():
        node = starting_node(cls, found.impl, found.name)
        optimizer, failed = tried(node)
        memory = None if optimizer is None else measure_state(optimizer)
    return Shown(found.impl, found.name, cls, node, memory, failed)


def _path_of(name: str) -> str:
    """Return where the only class of a name is.

    Raises:
        WrongObjectError: No package here has one, or several have.

    """
    packages = catalogue()
    paths = [f"{p.impl}.{name}" for p in packages if name in p.classes]
    if len(paths) > 1:
        listed = ", ".join(paths)
        msg = f"{len(paths)} packages have {name}: give one of {listed}"
        raise WrongObjectError(msg)
    if not paths:
        names = {each for package in packages for each in package.names}
        near = nearest(name, names) or ": optim-hydra list has all"
        msg = f"no package here has an optimizer {name}{near}"
        raise WrongObjectError(msg)
    return paths[0]


def yaml_of(shown: Shown) -> str:
    """Return the file to start with."""
    name = shown.name.strip("_").lower()
    lines = [f"# conf/optim/my_{name}.yaml"]
    if shown.failed:
        lines += [f"# {line}" for line in f"not yet: {shown.failed}".splitlines()]
    lines.append("defaults: [base_optim, _self_]")
    return "\n".join([*lines, OmegaConf.to_yaml(shown.node)])


def reach(argument: Argument) -> str:
    """Return the key that sets an argument.

    Example:
        >>> reach(Argument("lr", 1e-3, "")), reach(Argument("momentum", 0, ""))
        ('lr', 'override_optimizer_config.momentum')

    """
    if argument.name in FIELDS:
        return argument.name
    key = f"{EXTRA}.{argument.name}"
    return f"implementation, {key}" if argument.name in _SWITCHES else key


def _lines(shown: Shown) -> list[str]:
    cls, memory = shown.cls, shown.memory
    lines = [summary_of(cls)] if summary_of(cls) else []
    if memory is not None and memory.per_parameter is not None:
        text = f"state: {memory.per_parameter:.3g} bytes for each parameter"
        lines.append(f"{text} (float32, a matrix of {SIDE} x {SIDE})")
    elif memory is not None:
        lines.append(f"state: not known, {memory.reason}")
    lines.append(f"weight decay: {_decay(cls)}")
    for need, code in needs_of(cls).items():
        lines.append(f"needs {need}" + f": {code}" * bool(code))
    if not find_wrapper(cls, None) and "lr" not in signature_of(cls).arguments:
        lines.append("takes no lr: fields of the schedule have nothing to act on")
    return lines


def _decay(cls: type[Optimizer]) -> str:
    if find_wrapper(cls, None) is not None:
        return "that of the class it wraps"
    if "weight_decay" not in signature_of(cls).arguments:
        return "none"
    meaning = decay_meaning(cls, {})
    return f"{meaning or 'taken'}, {_DECAY[meaning]}"


def _print_arguments(cls: type[Optimizer], console: Console) -> None:
    """Print a table, or lines where it is too wide: keys are there to be copied."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("argument", "default", "set by"):
        table.add_column(title)
    ignored = ignored_by(cls)
    lines = ["  set by, and the default:"]
    for argument in _arguments(cls):
        key, default = reach(argument), _default(argument)
        if argument.name in ignored:
            key = "nothing: it is not read"
            lines.append(f"    {argument.name}, by {key}: {default}")
        else:
            lines.append(f"    {key}: {default}")
        table.add_row(*map(Text, (argument.name, default, key)))
    unfolded = console.options.update_width(_UNFOLDED)
    if console.measure(table, options=unfolded).maximum <= console.width:
        console.print(table)
    else:
        console.print(Text("\n".join(lines)), soft_wrap=True)


def _arguments(cls: type[Optimizer]) -> list[Argument]:
    """Return what can be set, the optimizer that a wrapper takes among it."""
    arguments, wrapper = signature_of(cls).arguments, find_wrapper(cls, None)
    if wrapper is None or wrapper.argument in arguments:
        return list(arguments.values())
    inner = Argument(wrapper.argument, inspect.Parameter.empty, "")
    return [inner, *arguments.values()]


def _default(argument: Argument) -> str:
    return "must be given" if argument.is_required else repr(argument.default)


def _data(shown: Shown) -> dict[str, Any]:
    memory, ignored = shown.memory, ignored_by(shown.cls)
    arguments = [
        {
            "name": argument.name,
            "default": None if argument.is_required else repr(argument.default),
            "required": argument.is_required,
            "set_by": [] if argument.name in ignored else reach(argument).split(", "),
        }
        for argument in _arguments(shown.cls)
    ]
    return {
        "impl": shown.impl,
        "name": shown.name,
        "version": version_of(shown.impl),
        "summary": summary_of(shown.cls),
        "bytes_per_parameter": memory.per_parameter if memory else None,
        "weight_decay": _decay(shown.cls),
        "needs": needs_of(shown.cls),
        "arguments": arguments,
        "node": shown.node,
        "failed": shown.failed or None,
    }
