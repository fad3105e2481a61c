"""Tell about renamed keys once per place, and remember what was written."""

from __future__ import annotations

import os
import warnings
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.errors import RenamedKeyWarning, join_key
from optim_hydra.renamed_keys import RenamedKey, same_value
from optim_hydra.tree import NODE_NAME
from optim_hydra.yaml_lines import place_of_key

__all__ = ["forget_written", "warn_renamed", "written_as"]


@dataclass(frozen=True)
class _Written:
    """An old key that somebody wrote, with its value and the place."""

    old: str
    value: Any
    where: str


# By full new key, so that a later error about the value can say what was written.
_written: dict[str, _Written] = {}


@dataclass
class _Shown:
    """The warnings shown under one list of filters: afresh in each catch_warnings."""

    filters: object
    texts: set[str] = field(default_factory=set)


# Several, as a list of filters holds again once what caught warnings is over.
_shown: deque[_Shown] = deque(maxlen=16)


def warn_renamed(renamed: RenamedKey, key: str, value: Any, where: str) -> None:
    """Warn about one old key, once per place, on the first rank of a run only."""
    new_key = join_key(key.rpartition(".")[0], renamed.new)
    _written[new_key] = _Written(key, value, where)
    text = (
        f"{key} is now {renamed.new}"
        f" (since {renamed.since}; the old key is removed in {renamed.removed_in})"
    )
    # Python's own memory of shown warnings is wiped by every import that adds a
    # filter (torch does), and would repeat them for each job of a sweep.
    shown = next((each for each in _shown if each.filters is warnings.filters), None)
    if shown is None:
        shown = _Shown(warnings.filters)
        _shown.append(shown)
    if f"{where}: {text}" in shown.texts or os.environ.get("RANK", "0") != "0":
        return
    shown.texts.add(f"{where}: {text}")
    line, column = place_of_key(where, key)
    place = f"{where}:{line}:{column}"
    if line and place in shown.texts:
        return  # a key that several nodes take from the same mapping
    shown.texts.add(place)
    warnings.warn_explicit(text, RenamedKeyWarning, where or "config", line or 1)


def written_as(at: str, key: str, value: Any) -> str:
    """Return the old key that the user wrote for this value, or nothing.

    A file of the group `optim` does not know where it is mounted.
    """
    for place in (join_key(at, key), join_key(NODE_NAME, key)):
        written = _written.get(place)
        if written and same_value(written.value, value):
            return written.old
    return ""


def forget_written(where: str) -> None:
    """Forget the old keys of one place, which is about to be read again."""
    for key in [key for key, written in _written.items() if written.where == where]:
        del _written[key]
