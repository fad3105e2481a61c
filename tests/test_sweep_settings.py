"""What was set in a job stays apart from what was built, launched or not set."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from optim_hydra.sweep.collect import collect
from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.page_curves import packed_curves
from optim_hydra.sweep.page_data import page_data
from optim_hydra.sweep.records import JOB, SWEEP, JobRecord, SweepRecord, write_record
from optim_hydra.sweep.reporting import report_sweep
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import over_seeds, ranked_jobs

ADAMW = {"classes": [{"class": "torch.optim.AdamW", "arguments": {"lr": 0.1}}]}


def put(
    folder: Path, jobs: Sequence[Sequence[str]], num_done: int | None = None
) -> Path:
    """Write a sweep whose first jobs are completed, job i with the result i."""
    folder.mkdir(parents=True)
    planned = [list(job) for job in jobs]
    sweep = SweepRecord(["python", "a.py"], ".", "minimize", None, folder.name, planned)
    write_record(folder / SWEEP, sweep)
    for number, overrides in enumerate(planned[:num_done]):
        job = JobRecord(number, overrides, "completed", float(number), started=1.0)
        job.nodes = {"optim": ADAMW}
        (folder / str(number)).mkdir()
        write_record(folder / str(number) / JOB, job)
    return folder


def settings(results: SweepResults) -> list[tuple[tuple[Any, ...], list[int]]]:
    return [(setting.values, setting.rows) for setting in over_seeds(results)]


def shown(results: SweepResults) -> dict[str, Any]:
    """Return the data of the page."""
    names = results.jobs["job"].tolist()
    ranked = [names[row] for row, _ in ranked_jobs(results)]
    curves = packed_curves(results.curves, ranked)
    return page_data(results, over_seeds(results), curves)


def labels(results: SweepResults) -> list[str]:
    return [setting["label"] for setting in shown(results)["settings"]]


def test_jobs_without_a_result_keep_what_was_swept_where_a_node_has_its_name(
    tmp_path: Path,
) -> None:
    names = ("adamw", "lion", "sgd")
    jobs = [[f"optim={name}", f"seed={seed}"] for name in names for seed in (0, 1)]
    folder = put(tmp_path / "sweep", jobs, num_done=2)
    results = report_sweep([folder])
    assert results.swept == ["optim", "seed"]
    assert results.nodes == ["optim (node)"]
    assert settings(results) == [
        (("adamw",), [0, 1]),
        (("lion",), [2, 3]),
        (("sgd",), [4, 5]),
    ]
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["optim"] for row in rows] == [name for name in names for _ in (0, 1)]
    assert [row["optim (node)"] for row in rows] == ["AdamW(lr=0.1)"] * 2 + [""] * 4


@pytest.mark.parametrize("key", ["rank", "last.loss", "result"])
def test_what_was_swept_is_shown_whatever_its_name(key: str, tmp_path: Path) -> None:
    results = collect([put(tmp_path / "sweep", [[f"{key}=8"], [f"{key}=16"]])])
    (name,) = results.swept
    assert results.jobs[name].tolist() == shown(results)["jobs"][name] == [8, 16]
    assert labels(results) == ["8", "16"]
    assert results.jobs["result"].tolist() == [0, 1]


def test_the_launcher_is_no_setting_but_a_key_of_that_name_is(tmp_path: Path) -> None:
    names = ("basic", "joblib")
    first, second = (
        put(tmp_path / name, [[f"+sweep={name}", f"lr={lr}"] for lr in (1, 2)])
        for name in names
    )
    results = collect([first, second])
    assert results.swept == ["lr"]
    assert settings(results) == [((1,), [0, 2]), ((2,), [1, 3])]
    own = put(tmp_path / "own", [["sweep=1"], ["sweep=2"]])
    assert collect([own]).swept == ["sweep"]
    hydras = [["hydra.verbose=true", "hydra/launcher=joblib"], ["hydra.verbose=false"]]
    assert collect([put(tmp_path / "hydra", hydras)]).swept == []


def test_what_one_sweep_did_not_set_is_empty(tmp_path: Path) -> None:
    first = put(tmp_path / "first", [["a.lr=0.1"], ["a.lr=0.2"]])
    more = [["a.lr=0.1", "width=128", "act=relu", "seed=0"], ["+a.lr=0.1", "~b.lr"]]
    second = put(tmp_path / "second", more)
    report_sweep([first, second], tmp_path)
    results = collect([first, second])
    assert results.swept == ["a.lr", "width", "act", "seed", "b.lr"]
    assert results.jobs["width"].tolist() == [None, None, 128, None]
    assert results.jobs["act"].tolist() == ["", "", "relu", ""]
    assert sorted(labels(results)) == [
        "a.lr=0.1",
        "a.lr=0.1 · b.lr=(deleted)",
        "a.lr=0.1 · width=128 · act=relu",
        "a.lr=0.2",
    ]


def test_sweeps_of_nothing_and_of_a_key_stay_apart(tmp_path: Path) -> None:
    bare, one = put(tmp_path / "bare", [[]]), put(tmp_path / "one", [["a.lr=0.1"]])
    results = collect([bare, one])
    assert settings(results) == [((None,), [0]), ((0.1,), [1])]
    assert labels(results) == ["nothing set", "0.1"]


def test_keys_are_named_by_the_end_that_they_have_alone(tmp_path: Path) -> None:
    jobs = [
        ["optim@critic.optim=sgd", "actor.optim.lr=1", "critic.optim.lr=1", "x.b=1"],
        ["optim@critic.optim=lion", "actor.optim.lr=2", "critic.optim.lr=2", "x.b=2"],
    ]
    first, _ = labels(collect([put(tmp_path / "sweep", jobs)]))
    assert first == "optim=sgd · actor.optim.lr=1 · critic.optim.lr=1 · b=1"


def test_the_best_setting_is_told_without_empty_keys(tmp_path: Path) -> None:
    first = put(tmp_path / "first", [["lr=0.1"]])
    second = put(tmp_path / "second", [["lr=0.2", "width=128", "act=relu"]], 0)
    write_page(collect([first, second]), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    best = page[page.index('<div class="best">') : page.index("<nav>")]
    assert "<dl><dt>lr</dt><dd>0.1</dd><dt>optim</dt>" in best
    assert best.count("<dt>") == 2
