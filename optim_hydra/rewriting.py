"""Say, key by key, what becomes of the items of one node that is converted.

The items are those of a mapping or of the overrides of one command, nested ones under
dotted paths (`override_optimizer_config.eps`). Whoever holds the text edits it
accordingly, so that data and files are converted by the same rules.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.renamed_keys import RENAMED_KEYS, conflict, same_value
from optim_hydra.schema import OptimConfig

__all__ = [
    "DEFAULTS",
    "EXTRA",
    "SAME",
    "Outcome",
    "Rewriting",
    "Unread",
    "flat",
    "nested",
]

EXTRA = "override_optimizer_config"
DEFAULTS = {f.name: f.default for f in dataclasses.fields(OptimConfig)}
_MISSING = dataclasses.MISSING


@dataclass(frozen=True)
class Unread:
    """Text in place of a value that is known later: `$LR`, `${lr}`, a sweep."""

    text: str


class _Same:
    """Stand for the value as it was written."""

    def __repr__(self) -> str:
        return "SAME"


SAME = _Same()


@dataclass(frozen=True)
class Outcome:
    """What becomes of one item: others in its place (none: it goes), or a question."""

    new: tuple[tuple[str, Any], ...] = ()
    undecided: str = ""

    def as_written(self, value: Any) -> Outcome:
        """Keep the text of a value that stays, whatever its quotes and digits."""
        if len(self.new) != 1 or self.new[0][1] is SAME:
            return self
        ((key, new),) = self.new
        is_same = type(new) is type(value) and new == value
        return Outcome(((key, SAME),)) if is_same else self


@dataclass
class Rewriting:
    """The items of one node, and what has been settled about them."""

    items: Mapping[str, Any]
    whole: bool
    """Whether these are all items there are: what is absent is at its default."""
    typed: bool = False
    """Whether somebody typed each: no value is there as a default only."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        """Whether the node has this key."""
        return key in self.items

    def get(self, key: str) -> Any:
        """Return a value that is known, else None."""
        value = self.items.get(key)
        return None if isinstance(value, Unread) else value

    def text(self, key: str) -> str | None:
        """Return a value that is text, else None."""
        value = self.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> float | None:
        """Return a value as a finite number, else None."""
        value = self.get(key)
        if isinstance(value, bool):
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        return number if math.isfinite(number) else None

    def is_unread(self, key: str) -> bool:
        """Whether the value is only known later."""
        return isinstance(self.items.get(key), Unread)

    def becomes(self, key: str, *new: tuple[str, Any]) -> None:
        """Put other items in the place of this one."""
        if key in self.items:
            self.outcomes[key] = Outcome(new)

    def goes(self, *keys: str) -> None:
        """Leave items out, as they change nothing."""
        for key in keys:
            self.becomes(key)

    def asks(self, key: str, why: str) -> None:
        """Leave an item as it is, for its author to decide."""
        if key in self.items:
            self.outcomes[key] = Outcome(undecided=why)

    def idles(self, key: str, new: str, beside: str) -> None:
        """Settle a floor that has no effect; at zero an override still finds it."""
        if self.whole:
            self.goes(key)
        elif self.number(key) == 0.0:
            self.becomes(key, (new, 0.0))
        else:
            why = f"{key} has no effect with {beside}: write {key}: 0.0, or another"
            self.asks(key, f"{why} schedule")

    def share(self, key: str, new: str) -> None:
        """Turn an absolute rate into a share of lr."""
        rate, lr = self.number(key), self.number("lr")
        if rate == 0.0:
            self.becomes(key, (new, 0.0))
        elif rate is None or not lr:
            beside = "known here" if self.is_unread("lr") else "said beside it"
            why = ", not known here" if lr else f" and lr is not {beside}"
            why = f"{key} is an absolute rate{why}: write {new}, a share of lr"
            self.asks(key, why)
        else:
            self.becomes(key, (new, rounded(rate / lr)))

    def pair(
        self, first: str, second: str, new: str, defaults: tuple[Any, Any]
    ) -> None:
        """Join two items into one with a list of both."""
        if first not in self.items and second not in self.items:
            return
        known = [self.number(key) for key in (first, second)]
        lacking = [
            key
            for key, value in zip((first, second), known, strict=True)
            if value is None and (key in self.items or not self.whole)
        ]
        if lacking:
            absent = [key for key in lacking if key not in self.items]
            why = f"{' and '.join(lacking)} not known here: write {new}, a list of both"
            if absent:
                why = f"{absent[0]} is not said beside it: write it, too"
            for key in (first, second):
                self.asks(key, why)
            return
        filled = [d if v is None else v for v, d in zip(known, defaults, strict=True)]
        held, other = (first, second) if first in self.items else (second, first)
        self.becomes(held, (new, filled))
        self.goes(other)

    def settle(self) -> dict[str, Outcome]:
        """Return what was settled, once no two items say one thing in two ways."""
        for key in list(self.items):
            for new, value in self.outcomes.get(key, Outcome()).new:
                self._settle_one(key, new, self.items[key] if value is SAME else value)
        return self.outcomes

    def _settle_one(self, key: str, new: str, value: Any) -> None:
        if new == key:
            return
        rivals = [
            (other, self._value_under(other, new))
            for other in self.items
            if other != key and self._value_under(other, new) is not _MISSING
        ]
        for other, held in rivals:
            if same_value(held, value):
                self._without(other, new)
            elif other == new and _is_default(new, held) and not self.typed:
                self.goes(other)
            else:
                text = conflict(
                    f"{key}: {_shown(self.items[key])}",
                    f"{other}: {_shown(self.items[other])}",
                )
                self.asks(key, text)
                if other in self.outcomes:
                    self.asks(other, text)

    def _value_under(self, key: str, new: str) -> Any:
        """Return the value that an item gives to a new key, if it gives one."""
        if key not in self.outcomes:
            return self.items[key] if key == new else _MISSING
        for path, value in self.outcomes[key].new:
            if path == new:
                return self.items[key] if value is SAME else value
        return _MISSING

    def _without(self, key: str, new: str) -> None:
        pairs = self.outcomes.get(key, Outcome()).new
        self.outcomes[key] = Outcome(tuple(pair for pair in pairs if pair[0] != new))


def _is_default(key: str, value: Any) -> bool:
    unset = {value for k in RENAMED_KEYS.values() if k.new == key for value in k.unset}
    return any(same_value(value, each) for each in (*unset, DEFAULTS.get(key)))


def _shown(value: Any) -> str:
    return value.text if isinstance(value, Unread) else str(value)


def rounded(ratio: float) -> float:
    """Return a quotient without the noise of its division: 1e-6 / 1e-5 is 0.1."""
    return float(f"{ratio:.12g}")


def flat(items: Mapping[str, Any]) -> dict[str, Any]:
    """Return items with those of `override_optimizer_config` under dotted paths."""
    result: dict[str, Any] = {}
    for key, value in items.items():
        if key == EXTRA and isinstance(value, Mapping):
            result.update({f"{EXTRA}.{name}": held for name, held in value.items()})
        else:
            result[str(key)] = value
    return result


def nested(items: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `flat`."""
    result: dict[str, Any] = {}
    for path, value in items.items():
        extra, _, name = path.partition(".")
        if extra == EXTRA and name:
            held = result.get(EXTRA)
            result[EXTRA] = {**(held or {}), name: value}
        elif value is not None or path not in result:
            result[path] = value
    return result
