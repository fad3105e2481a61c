"""Describe an optimizer class: what it is and needs, and a node to start with."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import sys
import warnings
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from optim_hydra.builder import build_optimizer
from optim_hydra.errors import ConfigError, told
from optim_hydra.missing import DEFAULT_IMPL
from optim_hydra.needs import PROTOCOLS, Need, need_of
from optim_hydra.signature import Argument, signature_of
from optim_hydra.wrapping import EXTRA, find_wrapper

__all__ = ["SIDE", "needs_of", "public_path", "starting_node", "summary_of", "tried"]

_WORDS = {
    "accelerator": "an accelerator",
    "bare_parameters": "parameters without names",
    "ignores_group_lr": "one lr for all groups",
    "matrices_only": "2-D parameters only",
    "named_parameters": "parameters with names",
    "one_group": "all parameters in one group",
    "one_lr": "one lr for all groups",
    "process_group": "a process group",
    "takes_model": "a model, not parameters",
}
_MATRICES = (
    "the node names another class for the rest, and a rule this one;"
    " conf/optim/muon.yaml also keeps embeddings and the head out"
)
_SENTENCE = re.compile(r"(.+?[.])(?:\s|$)", re.DOTALL)
_ROLE = re.compile(r":\w+:`~?([^`<]+?)\s*(?:<[^>]*>)?`")
SIDE = 256


def public_path(cls: type) -> str:
    """Return the shortest dotted path under which a class is offered.

    Example:
        >>> public_path(torch.optim.AdamW)
        'torch.optim.AdamW'

    """
    parts = cls.__module__.split(".")
    for end in range(1, len(parts)):
        module = ".".join(parts[:end])
        if getattr(sys.modules.get(module), cls.__name__, None) is cls:
            return f"{module}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def summary_of(cls: type) -> str:
    """Return the first sentence of a class's own docstring; nothing without one."""
    own = vars(cls)
    text = own.get("__doc__") or getattr(own.get("__init__"), "__doc__", None) or ""
    first, _, more = inspect.cleandoc(text).partition("\n\n")[0].partition("\n")
    is_title = more[:1].isupper() and not first.endswith((".", ","))
    whole = first if is_title else f"{first} {more}"
    found = _SENTENCE.match(whole)
    words = " ".join((found[1] if found else whole).split())
    return _ROLE.sub(r"\1", words)


def needs_of(cls: type[Optimizer]) -> dict[str, str]:
    """Return what a class needs beyond parameters and a step: a word, and the code.

    Example:
        >>> list(needs_of(torch.optim.LBFGS)), needs_of(torch.optim.AdamW)
        (['closure', 'all parameters in one group'], {})

    """
    need = need_of(cls)
    if need.refusal:
        return {"other means": need.refusal}
    needs = _of_the_loop(need)
    needs |= _of_the_node(need)
    wrapper = find_wrapper(cls, None)
    if wrapper is not None:
        code = f"{EXTRA}.{wrapper.argument}: {{optimizer: AdamW}}"
        needs["another optimizer"] = code
    for argument in signature_of(cls).arguments.values():
        is_given = argument.name in ("lr", "params") or wrapper is not None
        if argument.is_required and not is_given:
            needs[f"the argument {argument.name}"] = f"{EXTRA}.{argument.name}"
    return needs


def _of_the_loop(need: Need) -> dict[str, str]:
    """Say what the training loop and its place have to give."""
    needs: dict[str, str] = {}
    if need.protocol:
        needs[need.protocol.replace("_", " ")] = kept_by_the_loop(need)
    for field in dataclasses.fields(Need):
        value = getattr(need, field.name)
        if value is True and field.name != "only_warn":
            word = _WORDS.get(field.name, field.name.replace("_", " "))
            needs[word] = _MATRICES if field.name == "matrices_only" else ""
    return needs


def kept_by_the_loop(need: Need) -> str:
    """Say what the training loop has to keep, and how it says that it does."""
    what = f"{PROTOCOLS[need.protocol]}, in the training loop, which says so by"
    return f"{what} provides=[{need.protocol!r}]"


def _of_the_node(need: Need) -> dict[str, str]:
    """Say what the node has to write, and which packages it takes."""
    needs = {f"the module {name}": f"pip install {name}" for name in need.modules}
    for want in need.wants:
        needs[f"{want.argument} set"] = f"{EXTRA}.{want.argument}: {want.instead}"
    if need.group_keys:
        what = f"{need.flag} in its groups" if need.flag else "low-rank groups"
        keys = _flow(_keys_of(need))
        needs[what] = f"a rule, param_groups: [{{ndim: 2, {EXTRA}: {keys}}}]"
    return needs


def starting_node(cls: type[Optimizer], impl: str, name: str) -> dict[str, Any]:
    """Return a node of a class with its own defaults, as far as fields take them."""
    node: dict[str, Any] = {} if impl == DEFAULT_IMPL else {"optimizer_impl": impl}
    node["optimizer"] = name
    wrapper = find_wrapper(cls, None)
    if wrapper is not None:
        return {**node, "lr": 1e-3, EXTRA: {wrapper.argument: {"optimizer": "AdamW"}}}
    if need_of(cls).matrices_only:
        rule = {"ndim": 2, **node, **_values(cls)}
        return {"optimizer": "AdamW", "lr": 1e-3, "param_groups": [rule]}
    if need_of(cls).group_keys:
        rule = {"ndim": 2, EXTRA: _keys_of(need_of(cls))}
        return {**node, **_values(cls), "param_groups": [rule]}
    return {**node, **_values(cls)}


def _flow(values: dict[str, Any]) -> str:
    """Write plain values as YAML on one line."""
    return f"{{{', '.join(f'{name}: {_word(v)}' for name, v in values.items())}}}"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _keys_of(need: Need) -> dict[str, Any]:
    """Return values for the keys of a class's groups to start with."""
    return {n: True if n == need.flag else v for n, v in need.group_keys.items()}


def _values(cls: type[Optimizer]) -> dict[str, Any]:
    """Return the defaults of a class under the fields that take them."""
    node: dict[str, Any] = {}
    taken = signature_of(cls).arguments
    if "lr" in taken:
        node["lr"] = _number(taken["lr"], 1e-3)
    if "weight_decay" in taken:
        node["weight_decay"] = _number(taken["weight_decay"], 0.0)
    betas = taken["betas"].default if "betas" in taken else None
    if isinstance(betas, (tuple, list)) and all(_is_share(beta) for beta in betas):
        node["betas"] = list(betas)
    extra = {
        argument.name: "???"
        for argument in taken.values()
        if argument.is_required and argument.name not in ("lr", "weight_decay", "betas")
    }
    extra |= {want.argument: want.instead for want in need_of(cls).wants}
    return {**node, EXTRA: extra} if extra else node


def tried(node: dict[str, Any]) -> tuple[Optimizer | None, str]:
    """Build a node for one matrix; return the optimizer, or why there is none."""
    failed = ""
    for device in ("meta", "cpu"):
        try:
            return _build(node, device), ""
        except ConfigError as error:
            failed = str(error)
        except Exception as error:  # noqa: BLE001 - foreign code runs here
            failed = told(error)
    return None, failed


def _build(node: dict[str, Any], device: str) -> Optimizer:
    with torch.device(device):
        module = nn.Linear(SIDE, SIDE, bias=False)
    with warnings.catch_warnings(), torch.random.fork_rng([]):
        warnings.simplefilter("ignore")
        return build_optimizer(module, node, provides=PROTOCOLS)


def _number(argument: Argument, otherwise: float) -> float:
    value = argument.default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return otherwise
    number = float(value)
    return number if number >= 0 and math.isfinite(number) else otherwise


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value < 1
