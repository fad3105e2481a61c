"""Sweeps into a folder that was used before, interrupts, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
import torch

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.callback import error_text
from optim_hydra.sweep.collect import collect
from optim_hydra.sweep.metrics import log_metrics
from optim_hydra.sweep.plain_results import ResultError, plain_result
from optim_hydra.sweep.progress import SweepWatch
from optim_hydra.sweep.records import (
    JOB,
    SWEEP,
    JobRecord,
    SweepRecord,
    read_record,
    write_record,
)

TOWERS = Path(__file__).parent / "sweep_programs" / "towers.py"


def sweep_into(folder: Path, results: list[float], name: str) -> SweepRecord:
    sweep = SweepRecord(["python", "a.py"], ".", "minimize", None, name, name=name)
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder / SWEEP, sweep)
    for number, result in enumerate(results):
        place = folder / str(number)
        place.mkdir(exist_ok=True)
        job = JobRecord(number, [f"seed={number}"], "completed", result, sweep=name)
        write_record(place / JOB, job)
    return sweep


def test_jobs_of_an_earlier_sweep_in_the_folder_do_not_count(tmp_path: Path) -> None:
    sweep_into(tmp_path, [1.0, 2.0, 3.0], "first")
    sweep = sweep_into(tmp_path, [4.0], "second")
    assert collect([tmp_path]).jobs["result"].tolist() == [4.0]
    watch = SweepWatch(tmp_path, sweep)
    watch.look()
    assert watch.line() == "1 jobs done"


def test_a_folder_of_sweeps_stands_for_them(tmp_path: Path) -> None:
    sweep_into(tmp_path / "day" / "20-00-00", [1.0, 2.0], "first")
    sweep_into(tmp_path / "day" / "21-00-00", [3.0], "second")
    table = collect([tmp_path]).jobs
    assert table["job"].tolist() == ["20-00-00/0", "20-00-00/1", "21-00-00/0"]
    assert table["result"].tolist() == [1.0, 2.0, 3.0]


def test_what_failed_before_a_sweep_goes_on_is_not_told_again(tmp_path: Path) -> None:
    sweep = sweep_into(tmp_path, [1.0, 2.0], "only")
    path = tmp_path / "1" / JOB
    write_record(path, JobRecord(1, ["seed=1"], "failed", sweep="only"))
    watch = SweepWatch(tmp_path, sweep)
    watch.look()
    assert (watch.line(), watch.num_failed) == ("1 jobs done", 0)
    late = time.time() + 1
    write_record(path, JobRecord(1, ["seed=1"], "failed", started=late, sweep="only"))
    watch.look()
    assert (watch.line(), watch.num_failed) == ("2 jobs done, 1 failed", 1)


def test_the_last_jobs_are_told_though_they_were_counted_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "optim_hydra.sweep.progress")
    watch = SweepWatch(tmp_path, sweep_into(tmp_path, [1.0], "only"))
    watch.look()
    watch._tell()
    watch.start()
    sweep_into(tmp_path, [1.0, 2.0], "only")
    watch.look()  # as where failed jobs are counted for the exit status
    watch.finish()
    assert caplog.messages == ["sweep: 1 jobs done", "sweep: 2 jobs done"]


def test_an_interrupted_job_is_failed(tmp_path: Path) -> None:
    folder = tmp_path / "swept"
    texts = ["num_steps=100000000", "seed=0,1", f"hydra.sweep.dir={folder}"]
    # A shell's background job has no handler for it, and would go on.
    given = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, str(TOWERS), "-m", "+sweep=basic", *texts],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TORCHDYNAMO_DISABLE": "1"},
        )
    finally:
        signal.signal(signal.SIGINT, given)
    with process:
        try:
            deadline = time.time() + 120
            while not (folder / "0" / "metrics.csv").exists():
                assert time.time() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            shown, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode != 0
    job = read_record(folder / "0" / JOB, JobRecord)
    assert (job.status, job.error) == ("failed", "it was interrupted")
    assert "0 of 2 jobs completed, 1 failed, 1 missing" in shown


def test_an_error_that_cant_be_shown_is_still_told() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise ValueError

    expected = "SilentError: its message can't be shown, since str() of it fails"
    assert error_text(SilentError()) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (10**400, "result of type int is no float: int too large to convert to float"),
        (
            torch.empty((), device="meta"),
            "result of type Tensor is no float: "
            "Tensor.item() cannot be called on meta tensors",
        ),
    ],
    ids=["huge", "meta"],
)
def test_what_no_float_holds_is_refused(value: object, message: str) -> None:
    with pytest.raises(ResultError) as caught:
        plain_result(value)
    assert str(caught.value) == message


def test_half_a_row_is_dropped_when_logging_goes_on(tmp_path: Path) -> None:
    log_metrics(0, {"loss": 1.0}, folder=tmp_path)
    path = tmp_path / "metrics.csv"
    with path.open("a") as file:
        file.write("1,0.")
    log_metrics(1, {"loss": 0.5}, folder=tmp_path)
    assert path.read_text().splitlines() == ["step,loss", "0,1.0", "1,0.5"]


def test_a_second_sweep_into_the_folder_of_a_running_one_ends(tmp_path: Path) -> None:
    folder = tmp_path / "swept"
    command = [sys.executable, str(TOWERS), "-m", "+sweep=basic", "num_steps=100000000"]
    command.append(f"hydra.sweep.dir={folder}")
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline = time.time() + 120
    while not (folder / "0" / "metrics.csv").exists() and time.time() < deadline:
        time.sleep(0.1)
    before = (folder / SWEEP).read_text()
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert second.stderr.strip().splitlines()[-1] == (
        f"another sweep runs in hydra.sweep.dir={folder}: wait for its end, or choose"
        " another folder"
    )
    assert (folder / SWEEP).read_text() == before
    first.kill()
    first.wait()


def test_a_job_without_a_record_is_no_success(tmp_path: Path) -> None:
    folder = tmp_path / "swept"
    (folder / "1" / JOB).mkdir(parents=True)
    texts = ["num_steps=1", "seed=0,1", f"hydra.sweep.dir={folder}"]
    result = subprocess.run(
        [sys.executable, str(TOWERS), "-m", "+sweep=basic", *texts],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "1 of 2 jobs completed, 1 missing" in result.stdout


@pytest.mark.parametrize(
    "text", ['{"job": 0, "overrides": [], "nodes": {"a": 3}}', "[" * 100_000]
)
def test_a_damaged_record_is_a_failed_job(tmp_path: Path, text: str) -> None:
    sweep_into(tmp_path, [1.0, 2.0], "only")
    (tmp_path / "1" / JOB).write_text(text)
    table = collect([tmp_path]).jobs
    assert table["status"].tolist() == ["completed", "failed"]
    assert "can't be read" in table["error"][1]


def test_threads_may_log_into_one_file(tmp_path: Path) -> None:
    def log(name: str) -> None:
        for step in range(50):
            log_metrics(step, {name: float(step)}, folder=tmp_path)

    names = [f"loss{i}" for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(log, names))
    table = pd.read_csv(tmp_path / "metrics.csv")
    assert set(table) == {"step", *names}
    for name in names:
        logged = table[["step", name]].dropna()
        assert logged["step"].tolist() == logged[name].tolist() == list(range(50))


def test_metrics_are_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(WrongObjectError) as caught:
        log_metrics(0, 3, folder=tmp_path)
    assert str(caught.value) == "the values are of type int, not name -> number"
