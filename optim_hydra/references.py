"""Show text that a resolver gave by its reference: it may be a password."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from omegaconf import Container, DictConfig, ListConfig, OmegaConf

from optim_hydra.errors import ConfigError, Problem, told

__all__ = ["hide", "hide_in", "hiding", "references_of"]

_RESOLVER = re.compile(r"\$\{\s*[\w.]*\s*:")
_KEY = re.compile(r"\$\{\s*([^${}:]+?)\s*\}")
# Shorter text also occurs by chance, and is replaced in quotes only.
_LONG = 4
_DEEPEST = 20


def references_of(raw: Any, value: Any, root: Any) -> dict[str, str]:
    """Return the texts in a value that a resolver gave, each with its reference.

    Args:
        raw: Plain data with references as text.
        value: The same, resolved.
        root: The config, for keys that references go to.

    Example:
        >>> references_of({"a": "${oc.env:TOKEN}"}, {"a": "secret"}, None)
        {'secret': '${oc.env:TOKEN}'}

    """
    if isinstance(raw, str):
        return dict.fromkeys(_texts(value), raw) if _is_computed(raw, root) else {}
    found: dict[str, str] = {}
    if isinstance(raw, dict) and isinstance(value, Mapping):
        for key in raw.keys() & value.keys():
            found |= references_of(raw[key], value[key], root)
    elif isinstance(raw, list) and isinstance(value, (list, tuple)):
        for one, other in zip(raw, value, strict=False):
            found |= references_of(one, other, root)
    return found


def hide(text: str, references: Mapping[str, str]) -> str:
    """Put references in place of what they gave.

    Example:
        >>> hide("'secret' is not a float", {"secret": "${oc.env:TOKEN}"})
        "'${oc.env:TOKEN}' is not a float"

    """
    for value in sorted(references, key=len, reverse=True):
        quoted = f"'{references[value]}'"
        text = text.replace(repr(value), quoted)
        if len(value) >= _LONG:
            text = text.replace(value, references[value])
    return text


def hide_in(problems: list[Problem], references: Mapping[str, str]) -> list[Problem]:
    """Put references into problems; causes that tell what they gave are left out."""
    if not references:
        return problems
    return [
        replace(
            problem,
            what=hide(problem.what, references),
            cause=None if _tells(problem.cause, references) else problem.cause,
        )
        for problem in problems
    ]


@contextlib.contextmanager
def hiding(references: Mapping[str, str]) -> Iterator[None]:
    """Put references into errors that are raised inside.

    Raises:
        ConfigError: The error from inside.

    """
    try:
        yield
    except ConfigError as error:
        if not references:
            raise
        cause = None if _tells(error.__cause__, references) else error.__cause__
        raise type(error)(hide_in(list(error.problems), references)) from cause


def _tells(cause: BaseException | None, references: Mapping[str, str]) -> bool:
    """Whether an error, or what it comes from, has one of the texts in it."""
    while cause is not None:
        said = told(cause)
        if any(value in said for value in references):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _is_computed(raw: Any, root: Any, depth: int = 0) -> bool:
    """Whether a resolver is behind a reference, directly or by way of other keys."""
    if not isinstance(raw, str) or "${" not in raw:
        return False
    if _RESOLVER.search(raw) or depth > _DEEPEST:
        return True
    return any(
        _is_computed(_raw_at(root, key), root, depth + 1) for key in _KEY.findall(raw)
    )


def _raw_at(root: Any, key: str) -> Any:
    """Return what is written at a key; a reference to be careful where that is hard."""
    node = root
    for part in re.split(r"[.\[\]]+", key.strip("[]")):
        index = int(part) if isinstance(node, ListConfig) and part.isdigit() else part
        if not isinstance(node, (DictConfig, ListConfig)) or not part:
            return "${:}"
        if node._is_interpolation() or node._is_none() or node._is_missing():
            return "${:}"
        node = node._get_node(index)  # type: ignore[arg-type]
    if isinstance(node, Container):
        return "${:}" if "${" in str(OmegaConf.to_container(node)) else None
    return node._value() if hasattr(node, "_value") else "${:}"
