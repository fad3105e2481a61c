"""Check that a file and what is laid over it come to the same before and after.

Each is converted by itself, by what stands beside a key there: a share of `lr`, say,
while a script sets another `lr`. What then comes to something else stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import dialect_of
from optim_hydra.migrating.edits import Migrated, Question, value_text
from optim_hydra.migrating.sure_keys import ALWAYS
from optim_hydra.migrating.units import Unit, converted
from optim_hydra.renamed_keys import same_value
from optim_hydra.rewriting import DEFAULTS, EXTRA, Unread

__all__ = ["Clash", "find_clashes", "say_clashes"]

# In each of verl's groups, whatever a part of it says; some have an older spelling.
_OF_ALL = {
    "betas",
    "clip_grad",
    "lr_scheduler_type",
    "lr_warmup_steps",
    "lr_warmup_steps_ratio",
    "total_training_steps",
}


@dataclass(frozen=True)
class Clash:
    """A node and what is laid over it, which must be decided about before."""

    base: tuple[Path, Unit]
    over: tuple[Path, Unit]
    why: str


def find_clashes(units: Sequence[tuple[Path, Unit]]) -> Iterator[Clash]:
    """Yield the pairs that would come to something else once they are converted.

    Args:
        units: Of all files of the run.

    """
    bases = [(path, unit) for path, unit in units if unit.dialect]
    for base in bases:
        for over in units:
            if _is_over(base, over):
                why = _difference(base[1], over[1])
                if why:
                    yield Clash(base, over, why)


def _is_over(base: tuple[Path, Unit], over: tuple[Path, Unit]) -> bool:
    """Whether one may be merged over the other, as far as places and keys tell."""
    (_, lower), (_, upper) = base, over
    if lower is upper or lower.is_command or upper.is_whole:
        return False
    if not f".{upper.at}".endswith(f".{lower.at}"):
        return False
    if lower.is_undecided or upper.is_undecided:
        return False  # they stay as they are in any case
    if not lower.is_whole:  # the order of two parts is not known, nor all the keys
        return upper.is_command and bool(lower.outcomes)
    keys = lower.items.keys()
    return upper.changed <= keys and not upper.added & keys


def _difference(lower: Unit, upper: Unit) -> str:
    """Say what to write, where the converted pair would come to something else."""
    # A key of ours, which their file can't have, is what somebody decided for.
    theirs = lower.items.keys() if lower.is_whole else lower.items.keys() | _OF_ALL
    decided = upper.items.keys() - theirs
    below = {k: v for k, v in lower.items.items() if ALWAYS.get(k) not in decided}
    merged = {**below, **upper.items}
    outcomes = convert_items(merged, _dialect(lower, merged))
    asked = [done.undecided for done in outcomes.values() if done.undecided]
    if asked:
        return asked[0]
    wanted = converted(merged, outcomes)
    held = converted(lower.items, lower.outcomes)
    found = {**held, **converted(upper.items, upper.outcomes)}
    keys = [k for k in {**wanted, **found} if not _is_same(k, wanted, found)]
    if not keys:
        return ""
    has = ", ".join(f"{key}: {_shown(wanted, key)}" for key in keys)
    gets = ", ".join(f"{key}: {_shown(found, key)}" for key in keys)
    texts = [_text(upper, key, _shown(wanted, key), key in held) for key in keys]
    return f"it has {has} and would get {gets}: write {', '.join(texts)} here, too"


def _dialect(lower: Unit, merged: Mapping[str, Any]) -> str:
    if lower.is_whole:
        return lower.dialect
    return dialect_of(lower.dialect.partition(".")[0], merged)


def _text(upper: Unit, key: str, value: str, is_held: bool) -> str:
    if not upper.is_command:
        return f"{key}: {value}"
    return f"{'' if is_held else '++'}{upper.at}.{key}={value.replace(', ', ',')}"


def _is_same(key: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    first, second = (_meant(key, items) for items in (wanted, found))
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return list(first) == list(second)
    return same_value(first, second)


def _meant(key: str, items: Mapping[str, Any]) -> Any:
    """Return a value with what it means to say nothing."""
    value = items.get(key)
    if isinstance(value, Unread):
        return value.text
    if key == "min_lr_ratio":
        return value or 0.0
    if key == EXTRA:
        return value or {}
    return DEFAULTS.get(key) if value is None else value


def _shown(items: Mapping[str, Any], key: str) -> str:
    return value_text(_meant(key, items))


def say_clashes(
    clashes: Sequence[Clash], files: Mapping[Path, Migrated]
) -> dict[Path, list[Question]]:
    """Return a question for each thing laid over, with the places of what is below."""
    places: dict[tuple[Path, int, str, str], list[str]] = {}
    for clash in clashes:
        (below, lower), (above, upper) = clash.base, clash.over
        line = files[above].line_of(upper.start)
        known = places.setdefault((above, line, upper.at, clash.why), [])
        known.append(f"{below}:{files[below].line_of(lower.start)}")
    asked: dict[Path, list[Question]] = {}
    for (path, line, at, why), below_it in places.items():
        text = f"laid over {', '.join(dict.fromkeys(below_it))} {why}"
        text += f"; until then {'both' if len(below_it) == 1 else 'all'} stay as they"
        asked.setdefault(path, []).append(Question(line, at, f"{text} are"))
    return asked
