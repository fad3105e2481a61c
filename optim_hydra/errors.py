"""Own the exception and warning classes and the one layout of their messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hydra.errors import CompactHydraException

__all__ = [
    "ConfigError",
    "MigrationError",
    "OptimHydraError",
    "OptimHydraWarning",
    "Problem",
    "Problems",
    "RenamedKeyWarning",
    "TargetError",
    "UnknownKeyError",
    "WrongObjectError",
    "closest",
    "join_key",
    "nearest",
    "told",
]


class OptimHydraWarning(UserWarning):
    """Tell about a value that is accepted but probably not what was meant."""


class RenamedKeyWarning(FutureWarning):
    """Tell about a renamed key; a FutureWarning, since Python hides the others."""


class OptimHydraError(Exception):
    """Base of every error that this library raises on purpose."""

    def __str__(self) -> str:
        """Return the message as it is (KeyError would quote it)."""
        return Exception.__str__(self)


class WrongObjectError(OptimHydraError, TypeError):
    """A Python call was given an object of the wrong kind."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: `what` is a sentence, `key` the full config key."""

    what: str
    key: str
    error: type[ConfigError]
    cause: BaseException | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return `what @ key`, the layout of every message."""
        return f"{self.what} @ {self.key}" if self.key else self.what


class ConfigError(OptimHydraError, CompactHydraException, ValueError):
    """Values of an optimizer node can't be used; `problems` lists all of them.

    Hydra shows the message alone, and the stack with HYDRA_FULL_ERROR=1.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Render the problems, one line each."""
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            message = str(self.problems[0])
        else:
            lines = [f"{len(self.problems)} problems:", *map(str, self.problems)]
            message = "\n  - ".join(lines)
        super().__init__(message)

    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[Problem, ...]]]:
        """Pickle by the problems: a launcher sends errors between processes."""
        plain = tuple(Problem(p.what, p.key, p.error) for p in self.problems)
        return type(self), (plain,)


class UnknownKeyError(ConfigError, KeyError):
    """A key or an argument name that nobody reads."""


class TargetError(ConfigError, ImportError):
    """The optimizer class can't be had."""


class MigrationError(ConfigError):
    """A renamed key can't be carried over: removed, or in conflict."""


@dataclass
class Problems:
    """Collect what is wrong with one node, to report all of it at once."""

    at: str
    found: list[Problem] = field(default_factory=list)

    def add(
        self,
        what: str,
        key: str = "",
        error: type[ConfigError] = ConfigError,
        cause: BaseException | None = None,
    ) -> None:
        """Note one problem; `key` is relative to the node."""
        self.found.append(Problem(what, join_key(self.at, key), error, cause))

    def raise_if_any(self) -> None:
        """Raise what was found as one error, of the narrowest class that fits.

        Raises:
            ConfigError: or its subclass, where all problems are of that subclass.

        """
        if self.found:
            raise self.error()

    def error(self) -> ConfigError:
        """Return what was found as one error, chained to the first cause."""
        kinds = {problem.error for problem in self.found}
        error_type = kinds.pop() if len(kinds) == 1 else ConfigError
        error = error_type(self.found)
        error.__cause__ = next((p.cause for p in self.found if p.cause), None)
        return error


def told(error: BaseException) -> str:
    """Say which error foreign code raised, and its text; that may fail too.

    Example:
        >>> told(ValueError("too small")), told(SystemExit())
        ('ValueError: too small', 'SystemExit')

    """
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - foreign code runs here
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def join_key(at: str, key: str) -> str:
    """Join a node's place and a key below it: `actor.optim` + `lr`."""
    if not at or not key:
        return at or key
    return f"{at}{key}" if key.startswith("[") else f"{at}.{key}"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return `": did you mean a, b?"` for the nearest three, or nothing.

    Letter case is ignored and closest names come first.

    Example:
        >>> nearest("Adamw", ["SGD", "AdamW", "Adam"])
        ': did you mean AdamW, Adam?'

    """
    names = closest(name, candidates)
    return f": did you mean {', '.join(names)}?" if names else ""


def closest(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the nearest three candidates, closest first; letter case is ignored."""
    from difflib import get_close_matches  # noqa: PLC0415 - errors alone need it

    by_lower: dict[str, list[str]] = {}
    for candidate in sorted(set(candidates)):
        by_lower.setdefault(candidate.lower(), []).append(candidate)
    close = get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return [candidate for lower in close for candidate in by_lower[lower]][:3]
