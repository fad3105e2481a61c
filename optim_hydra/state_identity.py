"""Say beside saved state which class kept it, in which shape, and what is a template.

Each parameter has an entry of its own, `optim_hydra.{name}`, so that processes with
other parameters (pipeline stages) can save into one checkpoint.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

__all__ = ["IDENTITY", "Identity", "Writer", "read_identity"]

IDENTITY = "optim_hydra"
_FORMAT = 1
Shapes = Mapping[str, list[int] | None]


@dataclass(frozen=True)
class Identity:
    """What was known of a parameter when its state was saved."""

    cls: str
    """Path of the class that kept the state."""
    shape: list[int]
    """Shape of the parameter."""
    keys: Shapes
    """Key of its state -> shape of the tensor; an entry not listed is a template."""
    settings: list[str]
    """Keys of its group; an entry not listed is a template."""
    shared: list[str]
    """Keys that its optimizer kept for no parameter."""


class Writer:
    """Write identities; few of them differ, so that each is made once."""

    def __init__(self) -> None:
        """Know none yet."""
        self._texts: dict[Any, str] = {}

    def text(
        self,
        cls: str,
        parameter: Tensor,
        state: Mapping[str, Any],
        settings: tuple[str, ...],
        shared: tuple[str, ...],
    ) -> str:
        """Return the JSON of a parameter's identity."""
        shapes = tuple(
            (key, tuple(value.shape) if isinstance(value, Tensor) else None)
            for key, value in state.items()
        )
        mark = (cls, tuple(parameter.shape), shapes, settings, shared)
        if mark not in self._texts:
            keys: Any = dict(shapes)
            known = Identity(
                cls, list(parameter.shape), keys, list(settings), [*shared]
            )
            self._texts[mark] = json.dumps({"format": _FORMAT, **asdict(known)})
        return self._texts[mark]


@functools.lru_cache(maxsize=4096)
def read_identity(text: str) -> Identity:
    """Read the JSON of an identity.

    Raises:
        ValueError: It is none, or of another version of this library.

    """
    try:
        items = json.loads(text)
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise ValueError(msg) from error
    if not isinstance(items, dict) or items.pop("format", None) != _FORMAT:
        msg = "it is of another version"
        raise ValueError(msg)
    try:
        known = Identity(**items)
    except TypeError as error:
        raise ValueError(str(error)) from error
    lists = (known.shape, known.settings, known.shared)
    shapes = known.keys.values() if isinstance(known.keys, dict) else [0]
    are_shapes = all(shape is None or isinstance(shape, list) for shape in shapes)
    if not are_shapes or not all(isinstance(x, list) for x in lists):
        msg = "its fields are of other types"
        raise ValueError(msg)
    return known
