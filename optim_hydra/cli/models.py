"""Make the model that `--model` names, on the meta device: no memory, no numbers."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from optim_hydra.errors import WrongObjectError, nearest, told

__all__ = ["make_model", "models_by_node"]

_FORM = "--model [NODE=]package.module.Name[:arguments], such as torch.nn.Linear:4,2"


def models_by_node(texts: Sequence[str], nodes: Iterable[str]) -> dict[str, str]:
    """Return the text of each node's model; one without a node is for all the others.

    Raises:
        WrongObjectError: A text names no node, or two are for the same.

    """
    keys = list(nodes)
    if texts and not keys:
        msg = "--model is for nodes of this library, and the config has none"
        raise WrongObjectError(msg)
    own: dict[str, str] = {}
    for text in texts:
        head = text.partition(":")[0]
        key, _, path = text.partition("=") if "=" in head else ("", "", text)
        if key in own:
            whose = f"the node {key}" if key else "all nodes"
            msg = f"two models for {whose}: {own[key]} and {path}; write {_FORM}"
            raise WrongObjectError(msg)
        if key and key not in keys:
            near = nearest(key, keys) or f": there are {', '.join(keys)}"
            msg = f"--model {text}: no optimizer node {key}{near}"
            raise WrongObjectError(msg)
        if not path:
            msg = f"--model {text} names no model: write {_FORM}"
            raise WrongObjectError(msg)
        own[key] = path
    rest = own.pop("", None)
    return own if rest is None else dict.fromkeys(keys, rest) | own


def make_model(text: str) -> nn.Module:
    """Import what the dotted path names, from here or anywhere, and call it.

    What follows a colon are its arguments, as in Python: `64, 4` or `width=64`.

    Raises:
        WrongObjectError: It can't be had, fails, or makes no module.

    """
    path, _, arguments = text.partition(":")
    made = _call(_imported(path, text), text, arguments)
    if isinstance(made, nn.Module):
        return made
    msg = f"--model {text} makes a {type(made).__name__}, not a torch.nn.Module"
    raise WrongObjectError(msg)


def _imported(path: str, text: str) -> Any:
    module_name, _, name = path.rpartition(".")
    if not (module_name and name):
        msg = f"--model {text} is no dotted path: write {_FORM}"
        raise WrongObjectError(msg)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        msg = f"--model {text}: {module_name} can't be imported from {here}:"
        msg += f" {told(error)}"
        raise WrongObjectError(msg) from error
    if not hasattr(module, name):
        near = nearest(name, vars(module))
        msg = f"--model {text}: {module_name} has no {name}{near}"
        raise WrongObjectError(msg)
    return getattr(module, name)


def _call(function: Any, text: str, arguments: str) -> Any:
    positional, named = _read(arguments, text)
    try:
        with torch.device("meta"):
            is_made = isinstance(function, nn.Module)
            made = function if is_made else function(*positional, **named)
        return _moved(made) if isinstance(made, nn.Module) else made
    except (Exception, SystemExit) as error:
        msg = f"--model {text} fails: {told(error)}"
        raise WrongObjectError(msg) from error


def _read(arguments: str, text: str) -> tuple[list[Any], dict[str, Any]]:
    """Read arguments as Python has them; nothing is evaluated."""
    try:
        call = ast.parse(f"_({arguments})", mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            positional = [_value(node) for node in call.args]
            named = {str(word.arg): _value(word.value) for word in call.keywords}
            if all(word.arg for word in call.keywords):
                return positional, named
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    msg = f"--model {text}: {arguments} is no list of literals: write them as in"
    msg += " torch.nn.Linear:4,2 or my.Model:width=64,kind='deep'"
    raise WrongObjectError(msg)


def _moved(module: nn.Module) -> nn.Module:
    """Move a module to the meta device; what is tied stays tied, unlike by `to`."""
    moved: dict[Tensor, Tensor] = {}
    for each in module.modules():
        places: list[dict[str, Any]] = [each._parameters, each._buffers]
        for held in places:
            for name, tensor in held.items():
                if tensor is None or tensor.is_meta:
                    continue
                if tensor not in moved:
                    new = tensor.detach().to("meta")
                    if isinstance(tensor, nn.Parameter):
                        new = nn.Parameter(new, tensor.requires_grad)
                    moved[tensor] = new
                held[name] = moved[tensor]
    return module


def _value(node: ast.expr) -> Any:
    """Read a literal; a bare word is text."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
