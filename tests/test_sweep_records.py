"""What jobs leave in their folders, and what is made of it when some of it is lost."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optim_hydra import log_metrics, plain_result
from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.collect import collect
from optim_hydra.sweep.curves import read_curves
from optim_hydra.sweep.plain_results import ResultError
from optim_hydra.sweep.records import (
    JOB,
    SWEEP,
    JobRecord,
    RecordError,
    SweepRecord,
    read_record,
    write_record,
)
from optim_hydra.sweep.resuming import resume_sweep


def put_job(folder: Path, number: int, **changes: Any) -> Path:
    place = folder / str(number)
    place.mkdir(parents=True)
    record = JobRecord(number, ["+sweep=basic", f"lr={number}", "seed=0"])
    record.status, record.result = "completed", float(number)
    vars(record).update(changes)
    write_record(place / JOB, record)
    return place


def put_sweep(folder: Path, **changes: Any) -> None:
    command = [sys.executable, "train.py", "-m", "lr=0,1,2", "seed=0", "width=3"]
    record = SweepRecord(command, str(folder), "minimize", None, "train")
    vars(record).update(changes)
    write_record(folder / SWEEP, record)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (torch.tensor(0.25), 0.25),
        (torch.ones(1, 1), 1.0),
        (3, 3.0),
        (True, 1.0),
        (None, None),
        ({"loss": torch.tensor(2.0)}, {"loss": 2.0}),
    ],
)
def test_a_result_becomes_plain_numbers(value: Any, plain: Any) -> None:
    assert plain_result(value) == plain
    assert type(plain_result(value)) is type(plain)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            torch.ones(2, 3),
            "result has 6 elements: log or return one number, such as a mean",
        ),
        (
            {"loss": torch.ones(2)},
            "loss has 2 elements: log or return one number, such as a mean",
        ),
        ("0.5", "result is of type str, where a number is due"),
        ([1.0], "result is of type list, where a number is due"),
        (torch.ones(0), "result is of type Tensor, where a number is due"),
    ],
)
def test_what_is_no_number_is_named(value: Any, message: str) -> None:
    with pytest.raises(ResultError) as caught:
        plain_result(value)
    assert str(caught.value) == message


def test_metrics_may_come_and_go(tmp_path: Path) -> None:
    log_metrics(1, {"loss": torch.tensor(0.5)}, folder=tmp_path)
    log_metrics(2, {"loss": 0.25, "accuracy": 1}, folder=tmp_path)
    log_metrics(3, {"accuracy": 2, "loss": None}, folder=tmp_path)
    assert (tmp_path / "metrics.csv").read_text().split() == [
        "step,loss,accuracy",
        "1,0.5,",
        "2,0.25,1.0",
        "3,,2.0",
    ]
    assert read_curves(tmp_path / "metrics.csv") == {
        "loss": ([1, 2], [0.5, 0.25]),
        "accuracy": ([2, 3], [1.0, 2.0]),
    }


def test_a_file_that_another_writer_changed_is_read_anew(tmp_path: Path) -> None:
    log_metrics(1, {"loss": 0.5}, folder=tmp_path)
    path = tmp_path / "metrics.csv"
    path.write_text("step,accuracy,loss\n0,0.25,1.0\n")
    log_metrics(2, {"loss": 0.5}, folder=tmp_path)
    assert path.read_text().split()[1:] == ["0,0.25,1.0", "2,,0.5"]
    path.unlink()
    log_metrics(3, {"loss": 0.25}, folder=tmp_path)
    assert path.read_text().split() == ["step,loss", "3,0.25"]
    path.write_text("")
    log_metrics(4, {"accuracy": 1.0}, folder=tmp_path)
    assert path.read_text().split() == ["step,accuracy", "4,1.0"]


def test_a_row_that_is_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss,lr.a\n1,0.5,0.1\n2,nan,0.1\nx,1,1\n3,0.")
    curves = read_curves(path)
    assert curves["lr.a"] == ([1, 2], [0.1, 0.1])
    assert curves["loss"] == ([1, 2], pytest.approx([0.5, math.nan], nan_ok=True))


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.floats(-1e6, 1e6), min_size=1),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_logged_is_read(rows: list[dict[str, float]]) -> None:
    import tempfile  # noqa: PLC0415 - hypothesis takes no fixture of one test

    with tempfile.TemporaryDirectory() as name:
        for step, row in enumerate(rows):
            log_metrics(step, row, folder=name)
        curves = read_curves(Path(name, "metrics.csv"))
    for key in "abc":
        expected = [(i, row[key]) for i, row in enumerate(rows) if key in row]
        found = curves.get(key, ([], []))
        assert list(zip(*found, strict=True)) == expected


def test_without_a_job_the_folder_is_asked_for() -> None:
    with pytest.raises(WrongObjectError) as caught:
        log_metrics(1, {"loss": 1.0})
    assert str(caught.value) == (
        "no Hydra job runs here: say where to log, log_metrics(..., folder=...)"
    )


def test_a_sweep_is_collected_with_what_is_missing_damaged_and_dead(
    tmp_path: Path,
) -> None:
    jobs = [["+sweep=basic", f"lr={n}", "seed=0"] for n in range(6)]
    put_sweep(tmp_path, jobs=jobs)
    put_job(tmp_path, 0)
    put_job(tmp_path, 1, status="failed", error="ValueError: no", result=None)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    put_job(tmp_path, 2, status="running", result=None, pid=ended.pid)
    put_job(tmp_path, 3, status="running", result=None, pid=os.getpid())
    (put_job(tmp_path, 4) / JOB).write_text("{")
    results = collect([tmp_path])
    table = results.jobs.set_index("job")
    assert list(table["status"]) == [
        "completed",
        "failed",
        "failed",
        "running",
        "failed",
        "missing",
    ]
    assert table.loc["1", "error"] == "ValueError: no"
    assert table.loc["2", "error"] == (
        "the process of this job ended without a result (killed, or out of memory)"
    )
    assert "job.json can't be read" in table.loc["4", "error"]
    assert results.swept == ["lr"]
    assert table.loc["5", "lr"] == 5
    assert math.isnan(table.loc["1", "result"])


@pytest.fixture(scope="module")
def opened() -> list[str]:
    """Return the list of all files that this process opens and folders it lists."""
    found: list[str] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.scandir"):
            found.append(str(arguments[0]))

    sys.addaudithook(note)  # which stays for good
    return found


def test_each_file_of_a_sweep_is_read_once(opened: list[str], tmp_path: Path) -> None:
    put_sweep(tmp_path)
    expected = [str(tmp_path), str(tmp_path / SWEEP)]
    for number in range(300):
        place = put_job(tmp_path, number)
        (place / ".hydra").mkdir()  # nothing in it is looked at
        (place / "metrics.csv").write_text("step,loss\n1,0.5\n")
        expected += map(str, (place, place / JOB, place / "metrics.csv"))
    opened.clear()
    results = collect([tmp_path])
    assert len(results.jobs) == 300
    found = [path for path in opened if path.startswith(str(tmp_path))]
    assert sorted(found) == sorted(expected)


def test_the_command_of_one_job_is_given(tmp_path: Path) -> None:
    put_sweep(tmp_path)
    put_job(tmp_path, 1)
    put_job(tmp_path, 2)
    commands = collect([tmp_path]).jobs["command"]
    assert list(commands) == [
        f"{sys.executable} train.py width=3 +sweep=basic lr={n} seed=0" for n in (1, 2)
    ]


def test_several_sweeps_are_merged(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        put_sweep(tmp_path / name, title=name, direction="maximize")
        put_job(tmp_path / name, 0, config_hash="same")
    results = collect([tmp_path / "first", tmp_path / "second"])
    assert results.title == "first, second"
    assert results.direction == "maximize"
    assert list(results.jobs["job"]) == ["first/0", "second/0"]
    assert list(results.jobs["same_as"]) == ["", "first/0"]


@pytest.mark.parametrize(
    ("result", "metric", "expected"),
    [
        ({"loss": 1.0, "accuracy": 0.5}, None, 1.0),
        ({"loss": 1.0, "accuracy": 0.5}, "accuracy", 0.5),
        (2.0, "val", 7.0),
        (2.0, None, 2.0),
    ],
)
def test_a_metric_may_rank_the_jobs(
    result: Any, metric: str | None, expected: float, tmp_path: Path
) -> None:
    put_sweep(tmp_path, metric=metric)
    place = put_job(tmp_path, 0, result=result)
    log_metrics(1, {"val": 7.0}, folder=place)
    assert list(collect([tmp_path]).jobs["result"]) == [expected]


def test_a_folder_without_a_sweep_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongObjectError) as caught:
        collect([tmp_path])
    assert str(caught.value) == (
        f"{tmp_path} has no jobs of a sweep: is sweep_report among its callbacks?"
    )
    with pytest.raises(WrongObjectError) as caught:
        resume_sweep(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} has no record of its command (sweep.json): only sweeps with the"
        " callback sweep_report, such as -m +sweep=basic, can be resumed"
    )


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = JobRecord(3, ["a=1"], nodes={"optim": {"classes": []}})
    write_record(tmp_path / JOB, record)
    assert read_record(tmp_path / JOB, JobRecord) == record
    assert [path.name for path in tmp_path.iterdir()] == [JOB]
    items = json.loads((tmp_path / JOB).read_text())
    (tmp_path / JOB).write_text(json.dumps({**items, "strange": 1}))
    with pytest.raises(RecordError, match="strange"):
        read_record(tmp_path / JOB, JobRecord)
