"""Small files and command lines of every kind: before, after, and what is undecided.

A file says the name of the file that it holds, the text before, the text after and
what the command lists, by line. Its folder says whose keys are converted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import convert_config
from optim_hydra.dialects import SOURCES
from optim_hydra.migrating.paths import FileReport, migrate_paths

CORPUS = Path(__file__).parent / "migration_corpus"
FILES = sorted(CORPUS.glob("*/*.txt"))
_PARTS = re.compile(r"(?s)file: (\S+)\n=== before\n(.*?)=== after\n(.*)")
SAME = "(the same)\n"


@dataclass(frozen=True)
class Case:
    file: str
    before: str
    after: str
    questions: list[str]


def read(path: Path) -> Case:
    match = _PARTS.fullmatch(path.read_text())
    assert match, path
    file, before, rest = match.groups()
    after, _, questions = rest.partition("=== to decide\n")
    after = before if after == SAME else after
    return Case(file, before, after, questions.splitlines())


def source_of(path: Path) -> str:
    return path.parent.name if path.parent.name in SOURCES else ""


def asked(report: FileReport | None) -> list[tuple[str, str]]:
    questions = report.questions if report else []
    return sorted((question.key, question.why) for question in questions)


@pytest.mark.parametrize("name", ["fsdp", "megatron", "veomni", "torchtitan"])
def test_a_group_of_verl_is_built_by_hydra(name: str, module: nn.Module) -> None:
    case = read(CORPUS / f"verl/{name}_group.txt")
    node = OmegaConf.create(case.after)
    built = hydra.utils.instantiate(node, module)
    assert type(built).__name__ == "AdamW"
    pair = [convert_config(OmegaConf.create(case.before)), convert_config(node)]
    for config in pair:
        config.clip_grad = 1.0  # verl's default, of which the file says nothing
        config.min_lr_ratio = config.min_lr_ratio or 0.0
    assert pair[0] == pair[1]


def test_there_is_a_case_of_every_kind() -> None:
    assert len(FILES) >= 60
    assert {path.parent.name for path in FILES} == {"ours", *SOURCES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_file_becomes(path: Path, tmp_path: Path) -> None:
    case = read(path)
    file = tmp_path / case.file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(case.before)
    source = source_of(path)
    (checked,) = migrate_paths([file], source=source, check=True) or [None]
    assert file.read_text() == case.before
    (report,) = migrate_paths([file], source=source) or [None]
    assert file.read_text() == case.after
    assert checked == report
    listed = [line.removeprefix(f"{file}:") for line in report.lines] if report else []
    assert listed == case.questions
    assert bool(report and report.diff) == (case.before != case.after)
    for _ in range(2):  # what is left to decide is told by every run
        (again,) = migrate_paths([file], source=source, check=True) or [None]
        assert file.read_text() == case.after
        assert again is None or not again.diff
        assert asked(again) == asked(report)
