"""Say what to change in a text, and what its author must decide, by place."""

from __future__ import annotations

import bisect
import contextlib
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

from optim_hydra.migrating.references import Reference
from optim_hydra.migrating.units import Unit
from optim_hydra.rewriting import Unread

__all__ = [
    "CannotEditError",
    "Edit",
    "Migrated",
    "Question",
    "once_anchored",
    "read_value",
    "value_text",
]

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class CannotEditError(Exception):
    """The text can't be edited without touching what belongs to others."""


@dataclass(frozen=True, order=True)
class Edit:
    """Put a new text in the place of the characters from `start` to `end`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, order=True)
class Question:
    """What could not be decided; the line counts from 1, 0 where it is the file."""

    line: int
    key: str
    why: str


@dataclass
class Migrated:
    """What one text becomes."""

    text: str
    edits: list[Edit] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    """The optimizer nodes that were found, for checks across files."""
    references: list[Reference] = field(default_factory=list)
    choices: list[tuple[int, str, str]] = field(default_factory=list)
    """Where a group of another library is chosen, the words, and the group."""
    held: Collection[int] = ()
    """Where nodes begin that stay as they are, because of other files."""
    _starts: list[int] | None = None

    def ask(self, index: int, key: str, why: str) -> None:
        """Note a question about the character at an index."""
        self.questions.append(Question(self.line_of(index), key, why))

    def line_of(self, index: int) -> int:
        """Return the line of the character at an index, from 1."""
        if self._starts is None:
            breaks = (match.end() for match in re.finditer("\r\n|\n|\r", self.text))
            self._starts = [0, *breaks]
        return bisect.bisect_right(self._starts, index)

    def take(self, part: Migrated, offset: int) -> None:
        """Take over what was found in a part of the text that begins at an offset."""
        self.edits += [
            Edit(offset + edit.start, offset + edit.end, edit.new)
            for edit in part.edits
        ]
        lines = len(re.findall("\r\n|\n|\r", self.text[:offset]))
        self.questions += [
            Question(question.line + lines, question.key, question.why)
            for question in part.questions
        ]
        self.choices += [(offset + at, text, name) for at, text, name in part.choices]

    def result(self) -> str:
        """Return the text with all edits made."""
        return "".join(self._pieces(sorted(set(self.edits))))

    def _pieces(self, edits: Iterable[Edit]) -> Iterator[str]:
        at = 0
        for edit in edits:
            yield self.text[at : edit.start]
            yield edit.new
            at = max(at, edit.end)
        yield self.text[at:]


def read_value(text: str) -> Any:
    """Read a scalar or a flow list as Hydra does; what is known later stays text.

    Example:
        >>> read_value("1e-4"), read_value("[0.9,0.95]"), read_value("$LR")
        (0.0001, [0.9, 0.95], Unread(text='$LR'))

    """
    text = text.strip()
    bare = text[1:-1] if text[:1] in "'\"" and text[:1] == text[-1:] else text
    if re.search(r"[$`]|^\?\?\?$|^\w+\(|\{\w*\}", bare) or "," in _outside(bare):
        return Unread(text)
    if _NUMBER.fullmatch(bare):
        return float(bare) if re.search(r"[.eE]", bare) else int(bare)
    try:
        with once_anchored():
            value = YAML(typ="safe", pure=True).load(bare)
    except YAMLError:
        return Unread(text)
    if isinstance(value, list):
        return [read_value(item) if isinstance(item, str) else item for item in value]
    return value


@contextlib.contextmanager
def once_anchored() -> Iterator[None]:
    """Refuse an anchor that is set twice, as PyYAML does, and so Hydra.

    Raises:
        YAMLError: One is.

    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReusedAnchorWarning)
        try:
            yield
        except ReusedAnchorWarning as warning:
            raise YAMLError(str(warning).strip()) from warning


def _outside(text: str) -> str:
    """Return a text without what stands in brackets or quotes."""
    return re.sub(r"\[[^\]]*\]|\{[^}]*\}|'[^']*'|\"[^\"]*\"", "", text)


def value_text(value: Any, *, spaced: bool = True) -> str:
    """Write a value as YAML and Hydra's grammar both read it."""
    if isinstance(value, Unread):
        return value.text
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        comma = ", " if spaced else ","
        return f"[{comma.join(value_text(item, spaced=spaced) for item in value)}]"
    if isinstance(value, dict):
        pairs = [f"{k}: {value_text(v, spaced=spaced)}" for k, v in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, str) and not isinstance(read_value(value), str):
        return f"'{value}'"
    return str(value)
