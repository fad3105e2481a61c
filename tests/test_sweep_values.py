"""One real sweep over values of the optimizers themselves: dicts, files, classes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "sweep_programs" / "towers.py"
EXTRA = "override_optimizer_config"
SWEPT = [
    "+experiment=high,high_again",  # of the folder of the program's config
    "critic.optim.optimizer=SGD,AdamW",
    f"critic.optim.{EXTRA}={{momentum:0.9}},{{momentum:0.0}}",
    f"actor.optim.{EXTRA}=choice({{amsgrad:true}},{{amsgrad:false}})",
    "critic.optim.strict=false",
]
DROPPED = (
    "AdamW takes no momentum: dropped, since strict is false"
    f" @ critic.optim.{EXTRA}.momentum"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep whose jobs have all completed."""
    folder = tmp_path_factory.mktemp("values") / "out"
    chosen = ["-m", "+sweep=basic", *SWEPT, f"hydra.sweep.dir={folder}"]
    result = subprocess.run(
        [sys.executable, PROGRAM, *chosen],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "16 of 16 jobs completed" in result.stdout
    assert "and 1 more setting" in result.stdout
    return folder


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def called(folder: Path, node: str) -> list[tuple[str, dict[str, Any]]]:
    """Return class and arguments of a node of each job."""
    found = []
    for number in range(16):
        job = json.loads((folder / str(number) / "job.json").read_text())
        built = job["nodes"][f"{node}.optim"]["classes"][0]
        found.append((built["class"].rpartition(".")[2], built["arguments"]))
    return found


def test_dicts_of_arguments_are_swept_by_commas_and_by_choice(
    folder: Path, rows: list[dict[str, str]]
) -> None:
    critics, actors = called(folder, "critic"), called(folder, "actor")
    momenta = [given["momentum"] for name, given in critics if name == "SGD"]
    assert momenta == [0.9, 0.9, 0.0, 0.0] * 2
    assert [given["amsgrad"] for _, given in actors] == [True, False] * 8
    texts = ["{momentum:0.9}"] * 2 + ["{momentum:0.0}"] * 2
    assert [row[f"critic.optim.{EXTRA}"] for row in rows] == texts * 4
    texts = ["{amsgrad:True}", "{amsgrad:False}"]
    assert [row[f"actor.optim.{EXTRA}"] for row in rows] == texts * 8
    # The momentum makes a difference, where there is one.
    assert rows[0]["result"] != rows[2]["result"]


def test_experiment_files_are_swept(folder: Path, rows: list[dict[str, str]]) -> None:
    assert [name for name, _ in called(folder, "actor")] == ["Adam"] * 16
    assert [given["lr"] for _, given in called(folder, "critic")] == [0.1] * 16
    names = ["high"] * 8 + ["high_again"] * 8
    assert [row["experiment"] for row in rows] == names


def test_a_value_that_a_class_does_not_take_is_dropped_by_name(folder: Path) -> None:
    critics = called(folder, "critic")
    assert [name for name, _ in critics] == (["SGD"] * 4 + ["AdamW"] * 4) * 2
    for number, (name, given) in enumerate(critics):
        log = (folder / str(number) / "towers.log").read_text()
        assert ("momentum" in given) == (name == "SGD")
        assert log.count(DROPPED) == (name == "AdamW")


def test_equal_jobs_are_recognised(folder: Path, rows: list[dict[str, str]]) -> None:
    # Another file that says the same; and another momentum, which AdamW lacks.
    first = ["", "", "", "", "", "", "4", "5"]
    assert [row["same_as"] for row in rows] == [*first, *"01234545"]
    for row in rows:
        same = rows[int(row["same_as"] or row["job"])]
        assert row["result"] == same["result"]
