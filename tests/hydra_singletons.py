"""Leave what Hydra keeps for the whole process as a test has found it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from omegaconf import DictConfig

__all__ = ["restored"]


@contextmanager
def restored() -> Iterator[None]:
    """Restore the singletons and what they hold.

    Hydra has a fixture for that, which imports every plugin anew after each test:
    more work than most of these tests do.
    """
    Plugins.instance()
    before = dict(Singleton._instances)
    held = {kind: _copied(vars(instance)) for kind, instance in before.items()}
    yield
    Singleton._instances = before
    for kind, instance in before.items():
        vars(instance).clear()
        vars(instance).update(held[kind])


def _copied(value: Any) -> Any:
    """Copy what may be changed in its place: nested dicts, lists and configs."""
    if isinstance(value, DictConfig):
        return copy.deepcopy(value)
    if isinstance(value, dict):
        copied = copy.copy(value)  # which may have a default of its own
        copied.update({key: _copied(item) for key, item in value.items()})
        return copied
    return [*value] if isinstance(value, list) else value
