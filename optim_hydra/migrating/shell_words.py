"""Split a shell text into commands and words, each with its place.

Only what rewriting needs: quotes, comments, continued lines, arrays, here-documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Word", "commands"]

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_CONTINUED = re.compile(r"\\\r?\n")
_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_QUOTED = {
    "'": re.compile(r"'[^']*'"),
    '"': re.compile(r'"(?:\\.|[^"\\])*"', re.DOTALL),
    "`": re.compile(r"`(?:\\.|[^`\\])*`", re.DOTALL),
}


@dataclass(frozen=True)
class Word:
    """One word of a command, with its quotes."""

    start: int
    end: int
    text: str


def commands(text: str, start: int = 0, end: int | None = None) -> Iterator[list[Word]]:
    """Yield the words of each command, those of an array in the one that sets it.

    Commands inside `$(...)` and here-documents come as commands of their own.
    """
    end = len(text) if end is None else end
    words: list[Word] = []
    heredocs: list[str] = []
    at, depth = start, 0
    while at < end:
        char = text[at]
        blank = _BLANK.match(text, at)
        if blank:
            at = blank.end()
        elif char == "#":
            at = _line_end(text, at, end)
        elif char in "\n;&|()":
            # Brackets count inside an array alone; elsewhere they may stand unpaired.
            is_array = depth > 0 or text[at - 1 : at + 1] == "=("
            depth = max(depth + (char == "(") * is_array - (char == ")"), 0)
            at += 1
            if not is_array:
                yield words
                words = []
            if char == "\n" and heredocs:
                for body_start, body_end in _bodies(text, at, end, heredocs):
                    yield from commands(text, body_start, body_end)
                    at = _line_end(text, body_end, end) + 1
                heredocs = []
        else:
            heredoc = _HEREDOC.match(text, at)
            if heredoc and not text.startswith("<<<", at):
                heredocs.append(heredoc[2])
                at = heredoc.end()
                continue
            stop = _word_end(text, at, end)
            words.append(Word(at, stop, text[at:stop]))
            yield from _substituted(text, at, stop)
            at = stop
    yield words


def _substituted(text: str, start: int, end: int) -> Iterator[list[Word]]:
    """Yield the commands inside the `$(...)` of one word."""
    at = start if text[start] != "'" else end
    while (at := text.find("$(", at, end)) >= 0:
        closing = _closing(text, at + 1, end)
        yield from commands(text, at + 2, closing - 1)
        at = closing


def _line_end(text: str, at: int, end: int) -> int:
    found = text.find("\n", at, end)
    return end if found < 0 else found


def _bodies(
    text: str, at: int, end: int, names: list[str]
) -> Iterator[tuple[int, int]]:
    for name in names:
        closing = re.compile(rf"^\s*{name}\s*$", re.MULTILINE).search(text, at, end)
        if closing is None:
            return
        yield at, closing.start()
        at = _line_end(text, closing.start(), end) + 1


def _word_end(text: str, at: int, end: int) -> int:
    while at < end:
        char = text[at]
        if char == "\\":
            if _CONTINUED.match(text, at):
                break
            at += 2
        elif char in _QUOTED:
            quoted = _QUOTED[char].match(text, at, end)
            # An apostrophe alone is no quote: it would swallow the rest of the text.
            at = quoted.end() if quoted else at + 1
        elif char == "$" and text[at + 1 : at + 2] in ("(", "{"):
            at = _closing(text, at + 1, end)
        elif char in " \t\r\n;&|()":
            break
        else:
            at += 1
    return min(max(at, 1), end)


def _closing(text: str, at: int, end: int) -> int:
    """Return where the bracket at `at` is closed."""
    pairs = {"(": ")", "{": "}"}
    opening, closing, depth = text[at], pairs[text[at]], 0
    for index in range(at, end):
        depth += (text[index] == opening) - (text[index] == closing)
        if depth == 0:
            return index + 1
    return end
