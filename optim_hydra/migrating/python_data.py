"""Migrate nodes that a Python program has as data: dicts, and old keys it reads."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_in_file
from optim_hydra.migrating.editors import removed_item
from optim_hydra.migrating.edits import CannotEditError, Edit, Migrated
from optim_hydra.migrating.settings import described, settings_among
from optim_hydra.migrating.settled import Settled
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.rewriting import EXTRA, SAME, Outcome, Unread
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_data"]


@dataclass(frozen=True)
class _Pair:
    """One item of a dict, or one keyword of a call, with its place in the text."""

    start: int
    end: int
    quote: str
    """Of its key; none for a keyword."""
    value: Any
    code: str
    """Of the value."""


def migrate_data(text: str, migrated: Migrated, source: str) -> None:
    """Note the edits and questions of the dicts and calls of a program.

    Args:
        text: The whole file.
        migrated: Of it.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.

    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strings that are none of our business
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return  # a sketch, or for another Python: its strings are migrated in any case
    program = _Program(text)
    nodes = {id(held) for held in _node_dicts(tree)}
    for part in ast.walk(tree):
        if isinstance(part, (ast.Dict, ast.Call)) and id(part) in nodes:
            _migrate_dict(program, part, migrated, source)
        elif isinstance(part, (ast.Dict, ast.Call)) and source:
            pairs = program.pairs(part)
            items = {key: pair.value for key, pair in pairs.items()}
            found = settings_among(items, source)
            if found:
                first = min(pairs[key].start for key in found)
                migrated.ask(first, "", described(found, source))
        elif isinstance(part, ast.Subscript):
            _ask_of_subscript(program, part, migrated)


def _node_dicts(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the dicts that are called `optim`, by a key, a keyword or a variable."""
    for part in ast.walk(tree):
        named: list[tuple[str, ast.expr | None]] = []
        if isinstance(part, ast.Dict):
            named = [
                (str(key.value), value)
                for key, value in zip(part.keys, part.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        elif isinstance(part, ast.keyword):
            named = [(part.arg or "", part.value)]
        elif isinstance(part, ast.Assign):
            named = [(_last_name(target), part.value) for target in part.targets]
        elif isinstance(part, ast.AnnAssign):
            named = [(_last_name(part.target), part.value)]
        for name, value in named:
            if name == NODE_NAME and (
                isinstance(value, ast.Dict)
                or (isinstance(value, ast.Call) and _last_name(value.func) == "dict")
            ):
                yield value


def _last_name(target: ast.expr) -> str:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


class _Program:
    """A text, with the places of what was parsed of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = (match.end() for match in re.finditer("\r\n|\n|\r", text))
        self._starts = [0, *ends, len(text)]

    def place(self, part: ast.expr | ast.keyword) -> tuple[int, int]:
        """Return where an expression begins and ends."""
        end_line, end = part.end_lineno or part.lineno, part.end_col_offset or 0
        return self._index(part.lineno, part.col_offset), self._index(end_line, end)

    def _index(self, line: int, column: int) -> int:
        start = self._starts[line - 1]
        whole = self.text[start : self._starts[line]].encode()
        return start + len(whole[:column].decode(errors="ignore"))

    def pairs(self, part: ast.Dict | ast.Call) -> dict[str, _Pair]:
        """Return the items of a dict or the keywords of a call."""
        found: dict[str, _Pair] = {}
        if isinstance(part, ast.Call):
            for keyword in part.keywords:
                if keyword.arg:
                    start, _ = self.place(keyword)
                    found[keyword.arg] = self._pair(start, "", keyword.value)
            return found
        for key, value in zip(part.keys, part.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                start, _ = self.place(key)
                found[key.value] = self._pair(start, self.text[start], value)
        return found

    def _pair(self, start: int, quote: str, value: ast.expr) -> _Pair:
        begin, end = self.place(value)
        code = self.text[begin:end]
        try:
            held = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            held = Unread(code)
        return _Pair(start, end, quote, held, code)


def _migrate_dict(
    program: _Program, part: ast.Dict | ast.Call, migrated: Migrated, source: str
) -> None:
    pairs = program.pairs(part)
    items = {key: pair.value for key, pair in pairs.items()}
    extra = items.get(EXTRA)
    below = extra if isinstance(extra, dict) else {}
    given = {**items, **{f"{EXTRA}.{key}": held for key, held in below.items()}}
    dialect = dialect_in_file(source, given, str(items.get("_target_") or ""))
    settled = Settled("the dict" if dialect else "")
    for path, done in convert_items(given, dialect).items():
        pair = pairs.get(path) or pairs[EXTRA]
        try:
            if done.undecided:
                raise CannotEditError(done.undecided)  # noqa: TRY301 - one way to ask
            settled.edits += _edits(program.text, path, pair, done)
        except CannotEditError as error:
            settled.ask(pair.start, f"{NODE_NAME}.{path}", str(error))
    settled.note(migrated)


def _edits(text: str, path: str, pair: _Pair, done: Outcome) -> list[Edit]:
    """Return the edits that put other items in the place of one."""
    quote, sign = pair.quote, ": " if pair.quote else "="
    done = done.as_written(pair.value)
    texts = [
        f"{quote}{name}{quote}{sign}"
        f"{pair.code if value is SAME else _code(value, quote)}"
        for name, value in done.new
    ]
    key = f"{quote}{path}{quote}"
    is_plain = not any("." in name for name in (path, *(name for name, _ in done.new)))
    if not (is_plain and text.startswith(key, pair.start)):
        msg = "it changes nothing: remove it"
        if texts:
            msg = f"write {', '.join(texts)} in the dict itself"
        raise CannotEditError(msg)
    if not texts:
        return [removed_item(text, pair.start, pair.end)]
    if len(texts) == 1 and done.new[0][1] is SAME:
        start = pair.start + len(quote)
        return [Edit(start, start + len(path), done.new[0][0])]
    return [Edit(pair.start, pair.end, ", ".join(texts))]


def _code(value: Any, quote: str) -> str:
    quote = quote or '"'
    return f"{quote}{value}{quote}" if isinstance(value, str) else repr(value)


def _ask_of_subscript(
    program: _Program, part: ast.Subscript, migrated: Migrated
) -> None:
    """Ask about `["optim"]["old"]`, which reads or sets an old key."""
    name = _last_name(part)
    if name in RENAMED_KEYS and _last_name(part.value) == NODE_NAME:
        start, _ = program.place(part.slice)
        why = f"the program reads it: write {RENAMED_KEYS[name].new}"
        migrated.ask(start, f"{NODE_NAME}.{name}", why)
