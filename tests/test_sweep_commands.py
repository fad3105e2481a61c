"""What `optim-hydra report` and `resume` print, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from optim_hydra.errors import WrongObjectError
from optim_hydra.sweep.collect import collect
from optim_hydra.sweep.leaderboard import leaderboard
from optim_hydra.sweep.records import JOB, SWEEP, JobRecord, SweepRecord, write_record
from optim_hydra.sweep.reporting import report_sweep
from optim_hydra.sweep.resuming import resume_sweep


def put(folder: Path, jobs: list[list[str]], **changes: float) -> Path:
    sweep = SweepRecord(["python", "a.py"], ".", "minimize", None, folder.name)
    folder.mkdir(parents=True)
    write_record(folder / SWEEP, sweep)
    for number, overrides in enumerate(jobs):
        result = changes.get("result", 1234.5678 + number)
        (folder / str(number)).mkdir()
        job = JobRecord(number, overrides, "completed", result)
        write_record(folder / str(number) / JOB, job)
    return folder


def printed(folder: Path, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(leaderboard(collect([folder]), console))
    return [line.rstrip() for line in captured.get().splitlines()]


def many_keys(folder: Path) -> Path:
    """Eleven keys that differ: the later in the alphabet, the more values."""
    names = [f"critic.optim.{letter * 9}" for letter in "abcdefghijkl"]
    jobs = [
        [
            *(f"{name}=v{row % (k + 1)}{'x' * k}" for k, name in enumerate(names)),
            "seed=0",
        ]
        for row in range(12)
    ]
    return put(folder, [*jobs, [*jobs[0][:-1], "seed=1"]])


def test_keys_that_the_terminal_has_no_place_for_are_left_out(tmp_path: Path) -> None:
    lines = printed(many_keys(tmp_path / "sweep"), 80)
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    # The two that tell most rows apart, in a line or two each.
    heading = " ".join(lines[1:4])
    assert "critic.optim.kkkkk" in heading
    assert "critic.optim.lllll" in heading
    assert "jjjj" not in text
    assert "and 9 more keys in report.html" in text
    assert len(lines) < 12 * 2 + 8
    words = text.split()
    assert {str(row) for row in range(1236, 1246)} <= {*words}


def test_the_keys_of_the_best_setting_stay(tmp_path: Path) -> None:
    names = ("first.optim.long", "second.optim.long", "third.optim.long")
    jobs = [[f"{name}={value}" for name in names] for value in (1, 2, 3)]
    folder = put(tmp_path / "sweep", [["the.best.has.it=7"], *jobs])
    lines = printed(folder, 60)
    assert lines[2].split()[:2] == ["the.best.has.it", "first.optim.long"]
    assert lines[4].split() == ["7", "1235"]


@pytest.mark.parametrize("width", [60, 80, 200, 600])
def test_no_number_is_cut_whatever_the_width(width: int, tmp_path: Path) -> None:
    jobs = [[f"{'k' * 60}=0.000123{row}", f"lr=0.{row}"] for row in range(3)]
    folder = put(tmp_path / "sweep", jobs, result=-1.234567e-11)
    words = " ".join(printed(folder, width)).split()
    assert words.count("-1.235e-11") == 3
    assert {"0.000123", "0.0001231", "0.0001232", "0.1", "0.2"} <= {*words}


def test_the_folder_of_a_job_is_no_sweep(tmp_path: Path) -> None:
    folder = put(tmp_path / "sweep", [["lr=1"], ["lr=2"]])
    deeper = folder / "1" / ".hydra"
    deeper.mkdir()
    for place in (folder / "1", deeper):
        before = sorted(place.iterdir())
        with pytest.raises(WrongObjectError) as caught:
            report_sweep([place])
        message = f"{place} is inside a sweep's folder: optim-hydra report {folder}"
        assert str(caught.value) == message
        assert sorted(place.iterdir()) == before
        with pytest.raises(WrongObjectError) as caught:
            resume_sweep(place)
        message = f"{place} is inside a sweep's folder: optim-hydra resume {folder}"
        assert str(caught.value) == message


def test_the_folder_of_a_job_without_a_sweeps_record_is_none_either(
    tmp_path: Path,
) -> None:
    folder = put(tmp_path / "sweep", [["lr=1"], ["lr=2"]])
    (folder / SWEEP).unlink()
    with pytest.raises(WrongObjectError, match=f"optim-hydra report {folder}$"):
        collect([folder / "0"])
    assert len(collect([folder]).jobs) == 2


@pytest.mark.parametrize(
    "override",
    [
        "lr=0.1",
        "+width=3",
        "~lr",
        "+sweep=joblib",
        "hydra/sweeper=optuna",
        "++hydra.sweeper.params.lr=1,2",
        "hydra.sweep.subdir=a",
        "hydra.callbacks.sweep_report.resume=false",
        "--config-name=other",
    ],
)
def test_a_sweep_is_resumed_with_no_other_jobs(override: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "sweep", [["lr=1"]])
    with pytest.raises(WrongObjectError) as caught:
        resume_sweep(folder, ["hydra.launcher.n_jobs=2", override])
    assert str(caught.value) == (
        f"{override} can change the jobs of {folder}, and replace their results: start"
        " a new sweep with it; resume takes settings of how they are launched, such as"
        " hydra.launcher.n_jobs=2"
    )


def test_a_sweep_is_resumed_with_another_launcher(tmp_path: Path) -> None:
    folder = put(tmp_path / "sweep", [["lr=1"]])
    program = tmp_path / "a.py"
    program.write_text(f"import sys\nopen({str(program)!r}, 'w').write(str(sys.argv))")
    sweep = SweepRecord(["python", str(program)], str(tmp_path), "minimize", None, "a")
    write_record(folder / SWEEP, sweep)
    chosen = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    assert resume_sweep(folder, chosen) == 0
    assert program.read_text().endswith(f"{chosen}"[1:])
