"""Refuse classes that a config can't make, and ask for what they can't do without."""

from __future__ import annotations

import importlib.util

from optim_hydra.arguments import Planned
from optim_hydra.errors import Problems
from optim_hydra.given import EXTRA
from optim_hydra.missing import DISTRIBUTIONS
from optim_hydra.needs import need_of
from optim_hydra.registry import builder_of

__all__ = ["check_wants", "is_refused"]


def is_refused(cls: type, problems: Problems) -> bool:
    """Note why a class is not made from a config; whether that is so.

    A builder that was registered for the class gives what the config can't.
    """
    need = need_of(cls)
    if builder_of(cls) is not None:
        return False
    before = len(problems.found)
    if need.refusal:
        problems.add(f"{cls.__name__} {need.refusal}", "optimizer")
    for module in need.modules:
        if importlib.util.find_spec(module) is None:
            package = DISTRIBUTIONS.get(module, module)
            what = f"{cls.__name__} needs the module {module}: pip install {package}"
            problems.add(what, "optimizer")
    return len(problems.found) > before


def check_wants(cls: type, planned: Planned, problems: Problems) -> None:
    """Note arguments that are missing though the class can't do without them."""
    if builder_of(cls) is not None:
        return
    need, kwargs = need_of(cls), planned.kwargs
    for want in need.wants:
        has_default = kwargs.get(want.argument, want.refused) == want.refused
        if has_default and (not want.only_with or want.only_with in kwargs):
            given = f" and {want.only_with}" * bool(want.only_with)
            key = planned.keys.get(want.argument, f"{EXTRA}.{want.argument}")
            what = f"{cls.__name__} does not work with {want.argument}={want.refused}"
            problems.add(f"{what}{given}: write {want.instead}", key)
    for name, (other, value) in need.depends.items():
        has_effect = kwargs.get(other) is not None and value in (..., kwargs[other])
        if name in kwargs and not has_effect:
            given = f"{other}" if value is ... else f"{other}={value}"
            what = f"{cls.__name__} reads {name} beside {given} only: write both"
            problems.add(f"{what}, or leave {name} out", planned.keys[name])
    missing = [name for name in need.group_keys if name not in kwargs]
    if missing and len(missing) < len(need.group_keys):
        there = ", ".join(name for name in need.group_keys if name in kwargs)
        examples = ", ".join(f"{name}: {need.group_keys[name]}" for name in missing)
        what = f"{cls.__name__} takes {there} only together with {', '.join(missing)}"
        problems.add(f"{what}: add {{{examples}}}", EXTRA)
