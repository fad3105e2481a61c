"""Reports of sweeps with odd values, names and files: a page, and no wrong winner."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.metrics import log_metrics
from optim_hydra.sweep.plain_results import ResultError
from optim_hydra.sweep.records import (
    JOB,
    SWEEP,
    JobRecord,
    SweepRecord,
    write_record,
)
from optim_hydra.sweep.reporting import report_sweep
from optim_hydra.sweep.results import SweepResults


def put(folder: Path, overrides: Iterable[str], **sweep: Any) -> Path:
    """Write a sweep of completed jobs, job i with the result i."""
    folder.mkdir(parents=True)
    command = sweep.pop("command", ["python", "train.py", "-m"])
    record = SweepRecord(command, ".", "minimize", None, folder.name)
    for key, value in sweep.items():
        setattr(record, key, value)
    write_record(folder / SWEEP, record)
    for number, override in enumerate(overrides):
        job = JobRecord(number, [override], status="completed", result=float(number))
        (folder / str(number)).mkdir()
        write_record(folder / str(number) / JOB, job)
    return folder


def report(*folders: Path, **given: Any) -> SweepResults:
    results = report_sweep(list(folders), **given)
    assert (folders[0] / "report.html").stat().st_size > 1_000_000
    return results


@pytest.mark.parametrize(
    "overrides",
    [
        ["clip=1.0", "clip=inf"],
        ["act=[relu]", "act=[tanh]"],
        ["p=[/a]", "p=[/b]"],
        ["seed=1", "seed=99999999999999999999999"],
        ["result=a", "result=b"],
        ["+status=a", "+status=b"],
        [],
    ],
    ids=["inf", "markup", "closing", "huge", "result", "status", "none"],
)
def test_whatever_is_swept_there_is_a_page(
    overrides: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = report(put(tmp_path / "sweep", overrides))
    assert results.jobs["status"].tolist() == ["completed"] * len(overrides)
    assert results.jobs["result"].tolist() == [float(i) for i in range(len(overrides))]
    shown = capsys.readouterr().out
    for override in overrides:
        if not override.startswith("seed"):  # over seeds there is one row
            assert override.partition("=")[2] in shown


def test_a_run_that_diverged_is_failed_and_not_the_best(tmp_path: Path) -> None:
    folder = put(tmp_path / "sweep", ["a=1", "a=2"])
    for number, last in ((0, float("nan")), (1, 0.3)):
        for step, loss in enumerate([0.5, 0.1, last]):
            log_metrics(step, {"loss": loss}, folder=folder / str(number))
    table = report(folder, metric="loss").jobs
    assert table["status"].tolist() == ["failed", "completed"]
    assert table["error"].tolist() == ["loss ended as nan", ""]
    assert table["result"].isna().tolist() == [True, False]


def test_a_metric_that_no_job_has_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "sweep", ["a=1"])
    log_metrics(1, {"loss": 0.5}, folder=folder / "0")
    with pytest.raises(WrongObjectError) as caught:
        report_sweep([folder], metric="losss")
    message = "no job returned or logged 'losss': did you mean loss?"
    assert str(caught.value) == message


def test_a_configured_metric_that_no_job_has_is_named_and_the_page_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = put(tmp_path / "sweep", ["a=1", "a=2"], metric="losss")
    for number in (0, 1):
        log_metrics(1, {"loss": 0.5}, folder=folder / str(number))
    assert report(folder).jobs["result"].tolist() == [0.0, 1.0]
    assert caplog.messages == [
        "hydra.callbacks.sweep_report.metric: no job returned or logged 'losss':"
        " did you mean loss?"
    ]


def test_sweeps_in_folders_of_one_name_stay_apart(tmp_path: Path) -> None:
    folders = [put(tmp_path / day / "run", ["a=1", "a=2"]) for day in ("d1", "d2")]
    assert report(*folders).jobs["job"].tolist() == [
        f"{folder}/{number}" for folder in folders for number in (0, 1)
    ]


def test_a_program_that_is_a_module_is_repeated_as_one(tmp_path: Path) -> None:
    command = ["python", "-m", "my.train", "-m", "+sweep=basic", "a=1,2"]
    folder = put(tmp_path / "sweep", ["a=1"], command=command)
    assert report(folder).jobs["command"].tolist() == ["python -m my.train a=1"]


@pytest.mark.parametrize(
    "content",
    [b"step,l\xff\n1,2\n", b'step,"l\n' + b"1,2\n" * 50_000, None],
    ids=["no text", "no end of a quote", "folder"],
)
def test_metrics_that_cant_be_read_are_left_out_by_name(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = put(tmp_path / "sweep", ["a=1", "a=2"])
    path = folder / "0" / "metrics.csv"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert report(folder).jobs["status"].tolist() == ["completed"] * 2
    assert f"{path} was left out, it can't be read: " in caplog.text


@pytest.mark.parametrize(
    "changed",
    [{"job": "x"}, {"overrides": None}, {"result": "hi"}, {"error": 3}],
    ids=["job", "overrides", "result", "error"],
)
def test_a_record_of_other_types_is_a_failed_job(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    folder = put(tmp_path / "sweep", ["a=1", "a=2"])
    path = folder / "0" / JOB
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    table = report(folder).jobs
    assert table["status"].tolist() == ["failed", "completed"]
    wrong = next(iter(changed.values()))
    assert table["error"][0] == f"{path} can't be read: {wrong!r} is of the wrong type"


def test_an_error_with_what_no_text_holds_is_shown(tmp_path: Path) -> None:
    folder = put(tmp_path / "sweep", ["a=1"])
    failed = JobRecord(0, ["a=1"], status="failed", error="no file \udcff")
    write_record(folder / "0" / JOB, failed)
    assert report(folder).jobs["error"].tolist() == ["no file \\udcff"]


def test_a_step_is_a_number_and_has_its_name_alone(tmp_path: Path) -> None:
    log_metrics(torch.tensor(5), {"loss": 1.0}, folder=tmp_path)  # type: ignore[arg-type]
    assert (tmp_path / "metrics.csv").read_text() == "step,loss\n5,1.0\n"
    with pytest.raises(ResultError) as odd:
        log_metrics(float("nan"), {"loss": 1.0}, folder=tmp_path)  # type: ignore[arg-type]
    assert str(odd.value) == "step is nan, where a finite number is due"
    with pytest.raises(WrongObjectError) as caught:
        log_metrics(6, {"step": 1.0}, folder=tmp_path)
    message = "'step' is the column of the steps: give the value another name"
    assert str(caught.value) == message
