"""Try one class: by a config node of ours, and by the fixed rule."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from fixed_rule import build_by_fixed_rule
from torch import distributed
from torch.optim import Optimizer
from zoo_catalogue import Extra, extra_of
from zoo_loops import Task, falls, make_task, train
from zoo_values import candidates, snapshot

from optim_hydra import OptimHydraError, build_optimizer
from optim_hydra.given import EXTRA, FIELDS
from optim_hydra.needs import PROTOCOLS, Need, ignored_by, need_of
from optim_hydra.signature import Argument, signature_of
from optim_hydra.wrapping import find_wrapper

__all__ = ["Found", "try_class"]

# Learning rate and number of steps; parameter-free classes want the last.
RATES = ((1e-2, 40), (1e-1, 40), (1e-3, 40), (1.0, 40), (1.0, 800))
DEFAULTS = {"lr": 1e-3, "weight_decay": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}
MISSPELT = Argument("definitely_not_an_argument", 0.0, "")
_FIXED_FIELDS = ("lr", "weight_decay", "betas")

Config = dict[str, Any]
Build = Callable[[Task, Mapping[str, Any]], Any]


@dataclass
class Found:
    """What became of one class."""

    name: str
    built: bool = False
    trained: bool = False
    refused: str = ""
    """The sentence of our error, raised before the class was called."""
    broken: str = ""
    """What should not be: an error of another kind, or one after the call."""
    values: int = 0
    """How many values were set, one at a time."""
    lost: list[str] = field(default_factory=list)
    """Those that are nowhere in the optimizer and that nothing was said about."""
    raw: list[str] = field(default_factory=list)
    """Errors at these values that are not the library's."""
    fixed_built: bool = False
    fixed_trained: bool = False
    fixed_lost: list[str] = field(default_factory=list)
    fixed_error: str = ""


def try_class(cls: type[Optimizer], impl: str, name: str) -> Found:
    """Build, train and probe one class; nothing that goes wrong gets out of here."""
    found = Found(name)
    need, extra = need_of(cls), extra_of(impl, name)
    with _process_group() if need.process_group else nullcontext():
        _try_ours(found, cls, impl, extra, need)
        _try_fixed(found, cls, impl, extra, need)
    return found


@contextmanager
def _process_group() -> Iterator[None]:
    """Be a process group of one."""
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def node_of(impl: str, name: str, extra: Extra, **values: Any) -> Config:
    """Return the one node that a class is built from."""
    further = {**extra.further, **values.pop(EXTRA, {})}
    node = {"optimizer_impl": impl, "optimizer": name, **extra.fields, **values}
    node[EXTRA] = further
    if extra.rule:
        node["param_groups"] = [{"ndim": 2, EXTRA: extra.rule}]
    return node


def _try_ours(
    found: Found, cls: type[Optimizer], impl: str, extra: Extra, need: Need
) -> None:
    takes_lr = "lr" in _taken(cls, extra) and "lr" not in ignored_by(cls)
    rates = RATES if takes_lr else RATES[:1]
    for lr, steps in rates:
        task = make_task(need)
        values = {"lr": lr} if len(rates) > 1 else {}
        try:
            optimizer = build_optimizer(
                task.model,
                node_of(impl, found.name, extra, **values),
                provides=PROTOCOLS,
            )
            found.built = True
            if falls(train(task, optimizer, need.protocol, steps)):
                found.trained = True
                break
        except OptimHydraError as error:
            node = node_of(impl, found.name, extra, **values)
            key = "broken" if _is_called(cls, task, node) else "refused"
            setattr(found, key, str(error))
            break
        except Exception as error:  # noqa: BLE001 - foreign code runs here
            found.broken = f"{type(error).__name__}: {error}"
    if found.trained:
        found.broken = ""

    def build(task: Task, set_values: Mapping[str, Any]) -> Any:
        fields = {n: v for n, v in set_values.items() if n in FIELDS}
        further = {n: v for n, v in set_values.items() if n not in FIELDS}
        node = node_of(impl, found.name, extra, **fields, **{EXTRA: further})
        try:
            return build_optimizer(task.model, node, provides=PROTOCOLS)
        except OptimHydraError:
            raise
        except Exception as error:
            found.raw.append(f"{set_values}: {type(error).__name__}: {error}")
            raise

    if found.built:
        found.values, found.lost = _lost_values(cls, extra, need, build)


def _try_fixed(
    found: Found, cls: type[Optimizer], impl: str, extra: Extra, need: Need
) -> None:
    def build(task: Task, set_values: Mapping[str, Any]) -> Any:
        fields = {n: v for n, v in set_values.items() if n in _FIXED_FIELDS}
        further = {n: v for n, v in set_values.items() if n not in _FIXED_FIELDS}
        parameters = task.model.parameters()
        return build_by_fixed_rule(
            parameters,
            impl,
            found.name,
            {**extra.fields, **fields},
            {**extra.further, **further},
        )

    for lr, steps in RATES:
        task = make_task(need)
        try:
            optimizer = build(task, {"lr": lr})
            found.fixed_built = True
            if falls(train(task, optimizer, need.protocol, steps)):
                found.fixed_trained = True
                break
        except Exception as error:  # noqa: BLE001 - foreign code runs here
            found.fixed_error = f"{type(error).__name__}: {error}"
            if not found.fixed_built:
                return
    _, found.fixed_lost = _lost_values(cls, extra, need, build)


def _lost_values(
    cls: type[Optimizer], extra: Extra, need: Need, build: Build
) -> tuple[int, list[str]]:
    """Set one argument after another; return how many, and which had no effect."""
    taken = _taken(cls, extra)
    before = _built(build, need, {})
    fields = {name: Argument(name, DEFAULTS[name], "") for name in FIELDS}
    probed = {**fields, **taken, MISSPELT.name: MISSPELT}
    lost = [n for n, each in probed.items() if not _reaches(each, before, need, build)]
    return len(probed), lost


def _taken(cls: type[Optimizer], extra: Extra) -> dict[str, Argument]:
    """Return the arguments to try: those that the class's node has not set itself."""
    taken = signature_of(cls).arguments
    wrapper = find_wrapper(cls, extra.further)
    if wrapper is not None:
        inner = signature_of(torch.optim.SGD).arguments
        taken = {**taken, "lr": inner["lr"], "weight_decay": inner["weight_decay"]}
    mine = {"params", *extra.further}
    return {name: each for name, each in taken.items() if name not in mine}


def _reaches(
    argument: Argument, before: dict[str, str], need: Need, build: Build
) -> bool:
    """Whether a value changes the optimizer or its training, or is refused."""
    for value in candidates(argument):
        values = {argument.name: value}
        try:
            after = _built(build, need, values)
        except Exception:  # noqa: BLE001, S112 - refused, and not silently
            continue
        return after != before or (
            _weights(build, need, values) != _weights(build, need, {})
        )
    return True


def _built(build: Build, need: Need, values: Mapping[str, Any]) -> dict[str, str]:
    """Build; return what the optimizer holds, and what was warned about."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        held = snapshot(build(make_task(need), values))
    return held | {f"warning {each.message}": "" for each in warned}


def _weights(build: Build, need: Need, values: Mapping[str, Any]) -> list[Any]:
    """Return the weights after a few steps; the error's text where a step fails."""
    task = make_task(need)
    try:
        train(task, build(task, values), need.protocol, steps=12)
    except Exception as error:  # noqa: BLE001 - foreign code runs here
        return [str(error)]
    return [parameter.tolist() for parameter in task.model.parameters()]


def _is_called(cls: type[Optimizer], task: Task, node: Config) -> bool:
    """Whether a class's constructor is called for a node that is refused."""
    codes = {
        getattr(vars(base).get("__init__"), "__code__", None)
        for base in cls.__mro__
        if base not in (Optimizer, object)
    }
    calls: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        with suppress(OptimHydraError):
            build_optimizer(task.model, node, provides=PROTOCOLS)
    finally:
        sys.setprofile(None)
    return bool(calls)
