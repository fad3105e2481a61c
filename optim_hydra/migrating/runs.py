"""Migrate the texts of one run: each by its kind, then what concerns several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.files import TextFile
from optim_hydra.migrating.markdown import migrate_markdown
from optim_hydra.migrating.python_code import migrate_python
from optim_hydra.migrating.references import Reference, references_in
from optim_hydra.migrating.referred import Referred, settle_references
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.together import find_clashes, say_clashes
from optim_hydra.migrating.toml_settings import migrate_toml
from optim_hydra.migrating.units import Unit
from optim_hydra.migrating.yaml_texts import migrate_yaml
from optim_hydra.tree import NODE_NAME

__all__ = ["NAMES", "SUFFIXES", "migrate_texts"]

_YAML = (".yaml", ".yml")
_KINDS: dict[str, Callable[[str, str, Collection[int]], Migrated]] = {
    **dict.fromkeys(
        (".sh", ".bash", ".zsh", ".sbatch", ".slurm", ".mk"), migrate_script
    ),
    **dict.fromkeys((".md", ".markdown"), migrate_markdown),
    ".py": migrate_python,
    ".toml": migrate_toml,
}
_NO_GROUP = (
    "{} is a group of verl: convert its file in the same run, or choose one of ours,"
    " such as adamw"
)
SUFFIXES = (*_YAML, *_KINDS)
NAMES = ("Makefile", "makefile", "GNUmakefile")


def migrate_texts(files: Sequence[TextFile], source: str = "") -> list[Migrated]:
    """Say what becomes of each file, and of those that have to do with each other.

    Args:
        files: Of one run.
        source: Of foreign keys, one of `dialects.SOURCES`, or none.

    """
    run = _Run(files, source)
    clashes = list(find_clashes(run.units)) if source else []
    run.hold(each for clash in clashes for each in (clash.base, clash.over))
    asked: list[Referred] = []
    while True:
        referred = settle_references(run.references, run.units, source)
        asked += [each for each in referred if each.held]
        if not run.hold(node for each in referred for node in each.held):
            break
    for each in (*referred, *asked):
        _follow(each, run.found)
    for path, questions in say_clashes(clashes, run.found).items():
        run.found[path].questions += questions
    _ask_about_groups(run.found)
    return [run.found[file.path] for file in files]


@dataclass
class _Run:
    """What each file becomes, and which nodes wait for others."""

    files: Sequence[TextFile]
    source: str
    found: dict[Path, Migrated] = field(init=False)
    held: dict[Path, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take each file by itself first."""
        self.found = {file.path: _migrate(file, self.source) for file in self.files}

    @property
    def units(self) -> list[tuple[Path, Unit]]:
        return [(path, unit) for path, m in self.found.items() for unit in m.units]

    @property
    def references(self) -> dict[Path, list[Reference]]:
        return {path: migrated.references for path, migrated in self.found.items()}

    def hold(self, units: Iterable[tuple[Path, Unit]]) -> bool:
        """Leave nodes as they are, and say whether that is something new."""
        more: dict[Path, set[int]] = {}
        for path, unit in units:
            if unit.start not in self.held.get(path, ()):
                more.setdefault(path, set()).add(unit.start)
        for file in self.files:
            if file.path in more:
                held = self.held.setdefault(file.path, set())
                held |= more[file.path]
                self.found[file.path] = _migrate(file, self.source, held)
        return bool(more)


def _follow(referred: Referred, found: Mapping[Path, Migrated]) -> None:
    """Note the edit of a reference, or its question."""
    migrated, reference = found[referred.path], referred.reference
    key = f"{reference.at}.{reference.key}"
    edit = referred.edit
    if edit is None:
        places = [
            f"{'line ' if path == referred.path else f'{path}:'}"
            f"{found[path].line_of(unit.start)}"
            for path, unit in referred.held
        ]
        waits = " and ".join(dict.fromkeys(places))
        suffix = f"; until then the node at {waits} stays as it is" if waits else ""
        migrated.ask(reference.start, key, f"{referred.why}{suffix}")
    elif any(e.start < edit.end and edit.start < e.end for e in migrated.edits):
        why = "it refers to a key with another name now: refer to"
        migrated.ask(reference.start, key, f"{why} {edit.new}")
    else:
        migrated.edits.append(edit)


def _ask_about_groups(found: Mapping[Path, Migrated]) -> None:
    """Ask about groups of another library whose files are not in this run."""
    there = {path.stem for path in found if path.absolute().parent.name == NODE_NAME}
    for migrated in found.values():
        for index, words, group in migrated.choices:
            if group not in there:
                migrated.ask(index, words, _NO_GROUP.format(group))


def _migrate(file: TextFile, source: str, held: Collection[int] = ()) -> Migrated:
    if file.path.suffix in _YAML:
        return migrate_yaml(file.text, file.path.absolute(), source, held)
    migrate = _KINDS.get(file.path.suffix, migrate_script)
    migrated = migrate(file.text, source, held)
    migrated.references = references_in(file.text)
    return migrated
