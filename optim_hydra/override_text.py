"""Apply the table of renamed keys to what is typed on a command line.

Works on the texts alone, before Hydra parses them: values, sweeps and mounts stay
as they were typed, so that `--cfg job` and `.hydra/overrides.yaml` show the new key.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from optim_hydra.errors import MigrationError, Problem, RenamedKeyWarning
from optim_hydra.foreign_keys import FOREIGN_KEYS
from optim_hydra.rename_notices import forget_written, warn_renamed
from optim_hydra.renamed_keys import RENAMED_KEYS, RenamedKey, conflict, same_value
from optim_hydra.tree import NODE_NAME

__all__ = ["migrate_overrides", "migrate_texts", "renamed_in_braces"]

COMMAND_LINE = "command line"
_OVERRIDE = re.compile(r"(?s)(?P<prefix>\+\+|\+|~)?(?P<key>[^=@\s]+)(?P<value>=.*)?")
_QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_TOKEN = re.compile(rf"(?s){_QUOTED}|[{{}}:,]|[^{{}}:,'\"]+")


@dataclass
class _Override:
    """One override: its text as typed, and what it says about which key."""

    text: str
    prefix: str
    key: str
    value: str
    renamed: RenamedKey | None = None
    dropped: bool = False

    @property
    def node(self) -> str:
        return self.key.rpartition(".")[0]

    @property
    def literal(self) -> str | None:
        """The value's text without quotes; None where it is null."""
        text = self.value[1:].strip("'\"")
        return None if text.lower() == "null" else text

    @property
    def new_key(self) -> str:
        return f"{self.node}.{self.renamed.new}" if self.renamed else self.key

    def __str__(self) -> str:
        if self.renamed is None:
            return self.text
        # The new key is in every schema, so a `+` that was needed for the old
        # one would now be refused; `++` sets the key in either case.
        prefix = "++" if self.prefix == "+" else self.prefix
        return f"{prefix}{self.new_key}{self.value}"


def migrate_overrides(overrides: Iterable[str]) -> list[str]:
    """Return Hydra overrides with renamed optimizer keys under their new names.

    Keys below a node called `optim`, wherever it stands, with prefixes (`+`, `++`,
    `~`), sweeps and `{...}` values; everything else comes back as it is.

    Args:
        overrides: Texts as Hydra receives them, after shell quoting.

    Raises:
        MigrationError: Two spellings of a key disagree, or a key was removed or
            belongs to another library and means something else.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     migrate_overrides(["+actor.optim.warmup_steps_ratio=0.1", "seed=0"])
        ['++actor.optim.lr_warmup_steps_ratio=0.1', 'seed=0']

    """
    forget_written(COMMAND_LINE)
    return migrate_texts(overrides, COMMAND_LINE)


def migrate_texts(overrides: Iterable[str], where: str) -> list[str]:
    """Do the work of `migrate_overrides` for texts of any place, such as a file."""
    parsed = [_parse(text) for text in overrides]
    problems: list[Problem] = []
    _check_keys(parsed, problems)
    _settle_conflicts(parsed, problems)
    for override in parsed:
        if "{" in override.value:
            override.text = _rename_in_braces(override, problems, where)
    if problems:
        raise MigrationError(problems)
    for override in parsed:
        if override.renamed:
            value = override.literal
            warn_renamed(override.renamed, override.key, value, where)
    return [str(override) for override in parsed if not override.dropped]


def _parse(text: str) -> _Override:
    match = None if text.startswith("-") else _OVERRIDE.fullmatch(text)
    if match is None:
        return _Override(text, "", "", "")
    key, prefix = match["key"], match["prefix"] or ""
    override = _Override(text, prefix, key, match["value"] or "")
    if override.node.rpartition(".")[2] == NODE_NAME:
        override.renamed = RENAMED_KEYS.get(key.rpartition(".")[2])
    return override


def _check_keys(parsed: list[_Override], problems: list[Problem]) -> None:
    for override in parsed:
        siblings = {
            other.key.rpartition(".")[2]: other.value[1:]
            for other in parsed
            if other.node == override.node
        }
        last = override.key.rpartition(".")[2]
        if override.node.rpartition(".")[2] != NODE_NAME or override.prefix == "~":
            continue
        if last in FOREIGN_KEYS:
            what = FOREIGN_KEYS[last].advice(siblings)
        elif override.renamed and override.renamed.is_removed:
            what = override.renamed.removal
        else:
            continue
        problems.append(Problem(what, override.key, MigrationError))


def _settle_conflicts(parsed: list[_Override], problems: list[Problem]) -> None:
    """Keep one spelling of each key, or note that two of them disagree."""
    for override in parsed:
        renamed = override.renamed
        if renamed is None or override.dropped or override.prefix == "~":
            continue
        if override.literal is None and _says_nothing(override, renamed, parsed):
            override.dropped = True
            continue
        for other in parsed:
            if other.new_key != override.new_key or other.key == override.key:
                continue
            if other.dropped or other.prefix == "~":
                continue
            value = other.literal
            if renamed.is_set(value) and not same_value(value, override.literal):
                what = conflict(override.text, other.text)
                problems.append(Problem(what, override.key, MigrationError))
            other.dropped = True


def _says_nothing(
    override: _Override, renamed: RenamedKey, parsed: list[_Override]
) -> bool:
    """Whether null under an old key is verl's placeholder for "not set"."""
    same = [other for other in parsed if other.new_key == override.new_key]
    return not renamed.null_is_a_value or len(same) > 1


def renamed_in_braces(text: str) -> str:
    """Return one override with the old keys in its `{...}` values renamed, silently.

    Removed ones too: this is what rewrites them.

    Raises:
        MigrationError: Two spellings of a key, or a key of another library.

    """
    problems: list[Problem] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedKeyWarning)
        result = _rename_in_braces(_parse(text), problems, text)
    forget_written(text)
    removals = {renamed.removal for renamed in RENAMED_KEYS.values()}
    problems = [problem for problem in problems if problem.what not in removals]
    if problems:
        raise MigrationError(problems)
    return result


def _rename_in_braces(override: _Override, problems: list[Problem], where: str) -> str:
    """Rename keys inside `{...}` values, also nested and swept ones."""
    tokens = _TOKEN.findall(override.text)
    if "".join(tokens) != override.text:
        return override.text  # not in Hydra's grammar; it will say so itself
    path: list[str] = []
    seen: list[dict[str, str]] = []
    last = override.key.rpartition(".")[2]
    for index, token in enumerate(tokens):
        if token == "{":
            path.append(last)
            seen.append({})
        elif token == "}" and path:
            last = path.pop()
            seen.pop()
        elif tokens[index + 1 : index + 2] == [":"] and path:
            last = token.strip()
            if path[-1] == NODE_NAME:
                if _is_placeholder(tokens, index):
                    _drop_pair(tokens, index)
                    continue
                at = ".".join([override.node, *path] if override.node else path)
                tokens[index] = _rename_one(token, at, seen[-1], problems, where)
    return "".join(tokens)


def _is_placeholder(tokens: list[str], index: int) -> bool:
    """Whether a pair is an old key with a null that means "not set"."""
    renamed = RENAMED_KEYS.get(tokens[index].strip())
    is_null = "".join(tokens[index + 2 : index + 3]).strip().lower() == "null"
    return renamed is not None and is_null and not renamed.null_is_a_value


def _drop_pair(tokens: list[str], index: int) -> None:
    """Blank a key, its value and one comma beside them."""
    commas = [i for i in (index + 3, index - 1) if tokens[i : i + 1] == [","]]
    for i in (index, index + 1, index + 2, *commas[:1]):
        tokens[i] = ""


def _rename_one(
    token: str, at: str, seen: dict[str, str], problems: list[Problem], where: str
) -> str:
    name = token.strip()
    renamed = RENAMED_KEYS.get(name)
    new = renamed.new if renamed else name
    what = ""
    if name in FOREIGN_KEYS:
        what = FOREIGN_KEYS[name].advice({})
    elif renamed and renamed.is_removed:
        what = renamed.removal
    elif new in seen and seen[new] != name:
        what = f"{seen[new]} and {name} are one key: keep one of them"
    elif renamed:
        warn_renamed(renamed, f"{at}.{name}", "", where)
    if what:
        problems.append(Problem(what, f"{at}.{name}", MigrationError))
    seen[new] = name
    return token.replace(name, new)
