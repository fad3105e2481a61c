"""Make the model that `--model` names, on the meta device: no memory, no numbers."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

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
    if not module_name:
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
    if isinstance(function, nn.Module):
        return function.to("meta")
    try:
        call: Any = ast.parse(f"_({arguments})", mode="eval").body
        positional = [_value(node) for node in call.args]
        named = {word.arg: _value(word.value) for word in call.keywords}
        with torch.device("meta"):
            return function(*positional, **named)
    except (Exception, SystemExit) as error:
        msg = f"--model {text} fails: {told(error)}"
        raise WrongObjectError(msg) from error


def _value(node: ast.expr) -> Any:
    """Read a literal; a bare word is text."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)
