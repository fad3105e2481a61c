"""Put other overrides in the place of one, or none: in a command, a list, a program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from optim_hydra.migrating.edits import CannotEditError, Edit
from optim_hydra.migrating.pieces import Piece
from optim_hydra.migrating.removal import removed

__all__ = ["Editor", "ListEditor", "ProgramEditor", "WordsEditor", "removed_item"]


class Editor(Protocol):
    """Edit the pieces of one kind of text; a flag and its value may be two of them."""

    def replace(self, first: Piece, last: Piece, texts: Sequence[str]) -> Edit:
        """Put texts in the place of a piece, or of several in a row.

        Raises:
            CannotEditError: With what to write instead.

        """

    def remove(self, first: Piece, last: Piece) -> Edit:
        """Take it out, with the blanks or the comma beside it."""

    def add(self, last: Piece, text: str) -> Edit:
        """Put a text behind a piece."""

    def code_after(self, piece: Piece, following: Piece | None) -> str:
        """Return what stands between a piece and the next and is no text itself."""


@dataclass(frozen=True)
class WordsEditor:
    """The words of a command."""

    text: str
    can_remove: bool = True
    """Whether a command may end up empty, as it must not in prose."""

    def replace(self, first: Piece, last: Piece, texts: Sequence[str]) -> Edit:
        """Put words there, in the quotes of the last one or those that they need."""
        # The quotes of a flag's value are wanted no more where the value is another.
        new = " ".join(
            _quoted(text, last, first is last or last.text in text) for text in texts
        )
        return Edit(first.outer[0], last.outer[1], new)

    def remove(self, first: Piece, last: Piece) -> Edit:
        """Take the words out, and the line where nothing else is on it."""
        if not self.can_remove:
            raise CannotEditError(_says_nothing(first, last))
        return removed(self.text, first.outer[0], last.outer[1])

    def add(self, last: Piece, text: str) -> Edit:
        """Put a word behind one."""
        return Edit(last.outer[1], last.outer[1], f" {text}")

    def code_after(self, piece: Piece, following: Piece | None) -> str:  # noqa: ARG002
        """Return nothing: all words are text."""
        return ""


@dataclass(frozen=True)
class ListEditor:
    """The items of a YAML list, each of which stays one item."""

    def replace(self, first: Piece, last: Piece, texts: Sequence[str]) -> Edit:
        """Put one text there."""
        if first is not last:
            msg = f"write {', '.join(texts)} in the place of both items"
            raise CannotEditError(msg)
        if len(texts) > 1:
            msg = f"write {len(texts)} items here: {', '.join(texts)}"
            raise CannotEditError(msg)
        return Edit(first.start, last.end, *texts)

    def remove(self, first: Piece, last: Piece) -> Edit:
        """Refuse it: the comments beside an item are somebody's."""
        raise CannotEditError(_says_nothing(first, last))

    def add(self, last: Piece, text: str) -> Edit:
        """Refuse it."""
        msg = f"write {text} as another item beside {last.text}"
        raise CannotEditError(msg)

    def code_after(self, piece: Piece, following: Piece | None) -> str:  # noqa: ARG002
        """Return nothing: all items are text."""
        return ""


@dataclass(frozen=True)
class ProgramEditor:
    """The string literals of a Python program."""

    text: str
    brackets: Mapping[Piece, str]
    """The innermost bracket around each piece."""

    def replace(self, first: Piece, last: Piece, texts: Sequence[str]) -> Edit:
        """Put literals there, with the prefix and quotes of the last one."""
        prefix = self.text[last.outer[0] : last.start - len(last.quote)]
        between = self.text[first.outer[1] : last.outer[0]] if first != last else ""
        shown = ", ".join(texts)
        if not (first.is_alone and last.is_alone):  # several in one literal
            if last.quote in shown:
                msg = f"write {shown}"
                raise CannotEditError(msg)
            return Edit(first.start, last.end, " ".join(texts))
        held = [f"{prefix}{last.quote}{text}{last.quote}" for text in texts]
        is_code = any(
            "{" in text and text.partition("=")[2] not in last.text for text in texts
        )
        if (
            ((len(texts) > 1 or between) and self.brackets[first] != "[")
            or "#" in between
            or last.quote in shown
            or ("f" in prefix.lower() and is_code)
        ):
            msg = f"write {', '.join(held)}"
            raise CannotEditError(msg)
        return Edit(first.outer[0], last.outer[1], ", ".join(held))

    def remove(self, first: Piece, last: Piece) -> Edit:
        """Take the literals out of a list, with a comma."""
        if self.brackets[first] != "[" or not (first.is_alone and last.is_alone):
            raise CannotEditError(_says_nothing(first, last))
        return removed_item(self.text, first.outer[0], last.outer[1])

    def add(self, last: Piece, text: str) -> Edit:
        """Put a literal behind one, in its own quotes."""
        if not last.is_alone:
            return Edit(last.end, last.end, f" {text}")
        quote = last.quote
        if self.brackets[last] != "[" or quote in text or "{" in text:
            msg = f"write {quote}{text}{quote}, too"
            raise CannotEditError(msg)
        return Edit(last.outer[1], last.outer[1], f", {quote}{text}{quote}")

    def code_after(self, piece: Piece, following: Piece | None) -> str:
        """Return the code of the next item, where it is no literal."""
        if not piece.is_alone:
            return ""
        stop = following.outer[0] if following is not None else len(self.text)
        comma = re.compile(r"\s*,\s*(?=[^\s\])}#])").match(
            self.text, piece.outer[1], stop
        )
        depth, begin = 0, comma.end() if comma else stop
        for at in range(begin, stop):
            char = self.text[at]
            if depth == 0 and char in ",)]}\n":
                return self.text[begin:at]
            depth += (char in "([{") - (char in ")]}")
        return self.text[begin:stop]


def _says_nothing(first: Piece, last: Piece) -> str:
    texts = dict.fromkeys((first.text, last.text))
    return f"{' '.join(texts)} says nothing: remove it"


def _quoted(text: str, piece: Piece, keeps_quote: bool) -> str:
    """Put a text into the quotes that a piece had alone, or into those it needs."""
    if not piece.is_alone:
        return text
    quote = (piece.quote if keeps_quote else "") or (
        "'" if re.search(r"[\[\]{} *?]", text) else ""
    )
    return f"{quote}{text}{quote}"


def removed_item(text: str, start: int, end: int) -> Edit:
    """Take an item out of a list, a dict or a call, with one comma beside it."""
    line = text.rfind("\n", 0, start) + 1
    before = re.search(r",[ \t]*$", text[line:start])
    if before:
        return Edit(line + before.start(), end, "")
    following = re.compile(r"\s*,[ \t]*").match(text, end)
    if following:
        end = following.end()
        rest = re.compile(r"\r?\n").match(text, end)
        if not text[line:start].strip() and rest:
            return Edit(line, rest.end(), "")
        return Edit(start, end, "")
    before = re.search(r",\s*$", text[:start])
    return Edit(before.start() if before else start, end, "")
