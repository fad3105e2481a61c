"""Tell what a class needs: by the table of single classes, else by its shape."""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace

from optim_hydra.need_kinds import PROTOCOLS, Need
from optim_hydra.needs_table import NEEDS
from optim_hydra.signature import signature_of

__all__ = ["PROTOCOLS", "Need", "ignored_by", "need_of"]

_MODEL = "model"
_NAMED = "named_parameters"


def need_of(cls: type) -> Need:
    """Return what a class needs; the empty need where nothing is known.

    Example:
        >>> import torch
        >>> need_of(torch.optim.LBFGS).protocol, need_of(torch.optim.AdamW).protocol
        ('closure', '')

    """
    return _look_up(cls)


@functools.lru_cache(maxsize=1024)
def _look_up(cls: type) -> Need:
    for base in cls.__mro__:
        for module in (base.__module__, base.__module__.partition(".")[0]):
            need = NEEDS.get((module, base.__name__))
            if need is not None:
                return _completed(need, cls)
    return _completed(Need(), cls)


def ignored_by(cls: type) -> frozenset[str]:
    """Return the arguments that a class takes and does nothing with."""
    return _ignored_by(cls)


@functools.lru_cache(maxsize=1024)
def _ignored_by(cls: type) -> frozenset[str]:
    arguments = signature_of(cls).arguments.values()
    unread = {argument.name for argument in arguments if not argument.is_read}
    return frozenset(unread) | frozenset(need_of(cls).ignored)


def _completed(need: Need, cls: type) -> Need:
    """Add what the first argument and the methods of a class tell."""
    signature = signature_of(cls)
    first = signature.first
    if first == _MODEL:
        need = replace(need, takes_model=True)
    if first == _NAMED:
        need = replace(need, named_parameters=True, one_group=True)
    if signature.is_base:
        need = replace(need, refusal=_base_refusal(cls))
    if need.protocol:
        return need
    if _has(cls, "fused_backward"):
        return replace(need, protocol="fused_backward")
    if _requires_closure(cls):
        return replace(need, protocol="closure")
    if _has(cls, "train") and _has(cls, "eval"):
        return replace(need, protocol="train_eval_modes", only_warn=True)
    return need


def _base_refusal(cls: type) -> str:
    below: list[type] = type.__subclasses__(cls)
    names = ", ".join(sorted(each.__name__ for each in below)[:3])
    return f"is a base class: choose a subclass{' such as' * bool(names)} {names}"


def _has(cls: type, method: str) -> bool:
    """Whether a class or a base defines a method; a metaclass is not asked."""
    return any(callable(vars(base).get(method)) for base in cls.__mro__)


def _requires_closure(cls: type) -> bool:
    """Whether `step` has a parameter `closure` without a default."""
    step = next((vars(b)["step"] for b in cls.__mro__ if "step" in vars(b)), None)
    if not inspect.isfunction(step):
        return False
    closure = inspect.signature(step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty
