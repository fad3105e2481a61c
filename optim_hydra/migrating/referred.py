"""Settle what refers to keys that are renamed: follow the name, or ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from optim_hydra.foreign_keys import FOREIGN_KEYS, FOREIGN_ROWS
from optim_hydra.migrating.edits import Edit, value_text
from optim_hydra.migrating.references import Reference
from optim_hydra.migrating.units import Unit
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.rewriting import SAME, Outcome

__all__ = ["Referred", "settle_references"]

Found = Sequence[tuple[Path, Unit]]


@dataclass(frozen=True)
class Referred:
    """What becomes of one reference."""

    path: Path
    reference: Reference
    edit: Edit | None = None
    why: str = ""
    """A question, where the value changes with the name."""
    held: tuple[tuple[Path, Unit], ...] = ()
    """Nodes that wait until it is answered."""


def settle_references(
    references: Mapping[Path, Iterable[Reference]], units: Found, source: str
) -> list[Referred]:
    """Say what becomes of each reference to a key that is converted.

    Args:
        references: By file.
        units: Of all files of the run, as far as they are converted.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.

    """
    done = [
        _settle(path, reference, units, source)
        for path, found in references.items()
        for reference in found
    ]
    return [each for each in done if each is not None]


def _settle(
    path: Path, reference: Reference, units: Found, source: str
) -> Referred | None:
    key = reference.key
    meant = [
        (file, unit)
        for file, unit in units
        if f".{reference.at}".endswith(f".{unit.at}")
    ]
    nodes = [(file, unit) for file, unit in meant if not unit.is_command]
    holders = [(file, unit) for file, unit in nodes if key in unit.items]
    edited = [(file, unit) for file, unit in holders if key in unit.edited]
    if not edited:
        is_lost = meant and not holders
        return _lost(path, reference, bool(source and nodes)) if is_lost else None
    names = {_renamed(key, unit) for _, unit in holders}
    if len(names) == 1 and "" not in names:
        (name,) = names
        return _followed(path, reference, name)
    texts = [_becomes(key, unit) for _, unit in edited]
    why = f"it refers to {key}, which {' and '.join(dict.fromkeys(texts))}"
    return Referred(path, reference, None, why, tuple(edited))


def _renamed(key: str, unit: Unit) -> str:
    """Return the key that has the same value, or nothing."""
    if key not in unit.edited:
        return ""
    new = unit.outcomes.get(key, Outcome()).new
    if len(new) != 1 or any(
        row.key == key and row.absolute_rate for row in FOREIGN_ROWS
    ):
        return ""
    ((name, value),) = new
    held = unit.items[key]
    is_same = value is SAME or (isinstance(value, str) and value == held)
    return name if is_same else ""


def _becomes(key: str, unit: Unit) -> str:
    held = unit.items[key]
    pairs = unit.outcomes[key].new
    texts = [f"{name}: {value_text(held if v is SAME else v)}" for name, v in pairs]
    said = f"becomes {', '.join(texts)}" if texts else "goes"
    return f"{said}: write {value_text(held)}, or what it is to be"


def _lost(path: Path, reference: Reference, is_foreign: bool) -> Referred | None:
    """Settle a reference to a key that its node has no more, or not yet here."""
    key = reference.key
    if key in RENAMED_KEYS:
        return _followed(path, reference, RENAMED_KEYS[key].new)
    if is_foreign and key in FOREIGN_KEYS:
        why = f"it refers to {key}, which the node has not: write the value"
        instead = FOREIGN_KEYS[key].instead
        why += f", or refer to {instead}" if instead else ""
        return Referred(path, reference, None, why)
    return None


def _followed(path: Path, reference: Reference, name: str) -> Referred | None:
    if name == reference.key:
        return None
    return Referred(path, reference, Edit(reference.start, reference.end, name))
