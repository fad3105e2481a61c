"""Turn a dotted path in `lr_scheduler_type` into one checked scheduler class."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from optim_hydra.argument_values import fit_value
from optim_hydra.declared import is_path
from optim_hydra.errors import Problems, TargetError, nearest, told
from optim_hydra.signature import Argument, signature_of
from optim_hydra.targets import Target, load_module
from optim_hydra.value_checks import Refused, is_open

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler

__all__ = [
    "ARGUMENTS",
    "arguments_of",
    "check_arguments",
    "is_class_path",
    "lengths_due",
    "load_scheduler_class",
    "loaded_class",
]

ARGUMENTS = "override_lr_scheduler_config"
_KEY = "lr_scheduler_type"
# Set by the library: the schedule starts at step 0.
_OWN = {"last_epoch", "verbose"}
# The number of steps after the warmup, unless one of them, or OneCycleLR's epochs, is
# given.
_LENGTHS = ("T_max", "total_steps")


def is_class_path(name: str) -> bool:
    """Whether a `lr_scheduler_type` is the dotted path of a class."""
    return "." in name and is_path(name)


def load_scheduler_class(name: str, problems: Problems) -> type[LRScheduler] | None:
    """Import a scheduler class; note why it can't be had. Nothing is called."""
    impl, _, last = name.rpartition(".")
    module = load_module(Target(impl, last, _KEY, _KEY), problems)
    if module is None:
        return None
    try:
        found: Any = getattr(module, last)
    except AttributeError:
        what = f"{impl} has no {last}{nearest(last, _names_in(module))}"
        problems.add(what, _KEY, TargetError)
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its __getattr__ runs
        problems.add(f"{name} can't be had: {told(error)}", _KEY, TargetError, error)
        return None
    if not _is_scheduler_class(found):
        what = f"{name} is no class of torch.optim.lr_scheduler.LRScheduler"
        problems.add(what + nearest(last, _names_in(module)), _KEY, TargetError)
        return None
    needed = _needed_by_step(found)
    if needed:
        what = f"{name} needs {needed} at each step, which no config has: build it in"
        problems.add(f"{what} the trainer, over the optimizer", _KEY, TargetError)
        return None
    cls: type[LRScheduler] = found
    return cls


def loaded_class(name: str) -> type[LRScheduler] | None:
    """Return a class that saved state names; nothing is imported for it."""
    impl, _, last = name.rpartition(".")
    found = vars(sys.modules[impl]).get(last) if impl in sys.modules else None
    return found if _is_scheduler_class(found) else None


def arguments_of(cls: type) -> dict[str, Argument]:
    """Return what a config may set of a scheduler class's constructor."""
    taken = signature_of(cls).arguments
    return {name: each for name, each in taken.items() if name not in _OWN}


def check_arguments(
    cls: type, given: Mapping[str, Any], problems: Problems
) -> dict[str, Any]:
    """Return the given arguments that the class takes, in the kinds that it wants."""
    taken, fitted = arguments_of(cls), {}
    for name in taken.keys() & given.keys():
        try:
            if not is_open(given[name]):
                fitted[name] = fit_value(given[name], taken[name])
        except Refused as refused:
            problems.add(str(refused), f"{ARGUMENTS}.{name}{refused.index}")
    for name, argument in taken.items():
        if argument.is_required and name not in {*given, *_LENGTHS}:
            what = f"{cls.__name__} needs {name}: set {ARGUMENTS}.{name}; where it is"
            what += " an object, write a function instead, with register_schedule"
            problems.add(what, f"{ARGUMENTS}.{name}")
    return {name: fitted[name] for name in given if name in fitted}


def lengths_due(taken: Collection[str], given: Collection[str]) -> list[str]:
    """Name the arguments that the library gives: how many steps there are."""
    is_said = any(name in given for name in (*_LENGTHS, "epochs"))
    return [] if is_said else [name for name in _LENGTHS if name in taken]


def _is_scheduler_class(thing: object) -> bool:
    from torch.optim.lr_scheduler import LRScheduler  # noqa: PLC0415 - only once due

    return isinstance(thing, type) and issubclass(thing, LRScheduler)


def _names_in(module: object) -> list[str]:
    return [name for name, value in vars(module).items() if _is_scheduler_class(value)]


def _needed_by_step(cls: type[LRScheduler]) -> str:
    """Name what a trainer has to hand over at each step."""
    parameters = list(inspect.signature(cls.step).parameters.values())[1:]
    return ", ".join(
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )
