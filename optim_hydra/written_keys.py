"""Tell what a class works out in its groups from what it was told.

A class may keep counters and estimates in its groups beside its settings (Prodigy's
`d`, schedule-free's `k`): its code writes them. What it only reads is a setting, even
if no argument has its name (bitsandbytes makes `betas` from `alpha`).
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Iterator

from torch.optim import Optimizer

__all__ = ["written_keys"]


@functools.cache
def written_keys(cls: type) -> frozenset[str] | None:
    """Return the group keys that a class writes once it is constructed.

    None where its source can't be read.
    """
    found: set[str] = set()
    for base in cls.__mro__:
        if base in (Optimizer, object):
            continue
        # torch.optim.Muon says that it is of torch.optim, where its code is not.
        functions = filter(inspect.isfunction, vars(base).values())
        modules = {base.__module__, *(function.__module__ for function in functions)}
        written = [_by_class(module).get(base.__name__) for module in modules]
        if not any(keys is not None for keys in written):
            return None
        found |= {key for keys in written for key in keys or ()}
    return frozenset(found)


@functools.cache
def _by_class(module: str) -> dict[str, set[str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, SyntaxError, KeyError):
        return {}
    return {
        node.name: set(_written(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def _written(tree: ast.AST) -> Iterator[str]:
    """Yield each key of `group["key"] = ...` and `group["key"] += ...`."""
    if isinstance(tree, ast.FunctionDef) and tree.name == "__init__":
        return
    if isinstance(tree, ast.Subscript) and isinstance(tree.ctx, ast.Store):
        held, key = tree.value, tree.slice
        is_group = isinstance(held, ast.Name) and re.search("group$|^g$", held.id)
        if is_group and isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value
    for child in ast.iter_child_nodes(tree):
        yield from _written(child)
