"""Migrate the texts of one run: each by its kind, then what concerns several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.files import TextFile
from optim_hydra.migrating.markdown import migrate_markdown
from optim_hydra.migrating.python_code import migrate_python
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.together import find_clashes, say_clashes
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
    found = {file.path: _migrate(file, source) for file in files}
    units = [(path, unit) for path, each in found.items() for unit in each.units]
    clashes = list(find_clashes(units)) if source else []
    held: dict[Path, set[int]] = {}
    for clash in clashes:
        for path, unit in (clash.base, clash.over):
            held.setdefault(path, set()).add(unit.start)
    for file in files:
        if file.path in held:
            found[file.path] = _migrate(file, source, held[file.path])
    there = {f.path.stem for f in files if f.path.absolute().parent.name == NODE_NAME}
    for each in found.values():
        for index, words, group in each.choices:
            if group not in there:
                each.ask(index, words, _NO_GROUP.format(group))
    for path, questions in say_clashes(clashes, found).items():
        found[path].questions += questions
    return [found[file.path] for file in files]


def _migrate(file: TextFile, source: str, held: Collection[int] = ()) -> Migrated:
    if file.path.suffix in _YAML:
        return migrate_yaml(file.text, file.path.absolute(), source, held)
    migrate = _KINDS.get(file.path.suffix, migrate_script)
    return migrate(file.text, source, held)
