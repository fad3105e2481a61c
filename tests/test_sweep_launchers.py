"""Real sweeps with each launcher and sweeper: every job becomes a row."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from optim_hydra.sweep.collect import collect

PROGRAM = Path(__file__).parent / "sweep_programs" / "towers.py"
CLASSES = "optim@critic.optim=adamw,sgd"
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TORCHDYNAMO_DISABLE": "1",
}


def sweep(
    folder: Path, *overrides: str, start: tuple[Any, ...] = (PROGRAM,)
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *start, "-m", *overrides, f"hydra.sweep.dir={folder}"]
    return subprocess.run(
        command,
        cwd=folder.parent,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def jobs(folder: Path) -> list[dict[str, Any]]:
    """Return the records in the order of the job numbers."""
    found = [json.loads(path.read_text()) for path in folder.glob("*/job.json")]
    return sorted(found, key=lambda job: job["job"])


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def assert_four_jobs(
    folder: Path, result: subprocess.CompletedProcess[str], swept: str = "seed=0,1"
) -> None:
    assert result.returncode == 0, result.stdout + result.stderr
    found = jobs(folder)
    assert [job["status"] for job in found] == ["completed"] * 4
    classes = [job["nodes"]["critic.optim"]["classes"][0]["class"] for job in found]
    names = [name.rpartition(".")[2] for name in classes]
    assert names == ["AdamW", "AdamW", "SGD", "SGD"]
    key, _, values = swept.partition("=")
    texts = [text for job in found for text in job["overrides"] if f"{key}=" in text]
    assert texts == [f"{key}={value}" for value in values.split(",")] * 2
    table = rows(folder)
    assert [row["job"] for row in table] == ["0", "1", "2", "3"]
    assert [float(row["result"]) for row in table] == [job["result"] for job in found]
    assert list(pd.read_parquet(folder / "results.parquet")["job"]) == list("0123")
    assert (folder / "report.html").stat().st_size > 1_000_000
    assert "4 of 4 jobs completed" in result.stdout
    assert "sweep: 4 of 4 jobs done" in result.stdout + result.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of four jobs, one after the other and undisturbed."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    result = sweep(folder, "+sweep=basic", CLASSES, "seed=0,1")
    assert_four_jobs(folder, result)
    assert len({job["pid"] for job in jobs(folder)}) == 1
    return folder


@pytest.mark.parametrize(
    ("launcher", "num_processes"), [("joblib", 2), ("submitit", 4), ("local", 4)]
)
def test_four_jobs_run_and_are_reported(
    launcher: str, num_processes: int, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    result = sweep(folder, f"+sweep={launcher}", CLASSES, "seed=0,1")
    assert_four_jobs(folder, result)
    assert len({job["pid"] for job in jobs(folder)}) == num_processes


def test_ray_that_runs_already_is_used_and_a_job_may_use_it_too(tmp_path: Path) -> None:
    program = tmp_path / "with_ray.py"
    program.write_text(
        "import sys\n"
        "import ray\n"
        f"sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "from towers import main\n"
        "ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)\n"
        "main()\n"
    )
    folder, also = tmp_path / "out", "also=plain,ray"
    result = sweep(folder, "+sweep=ray", CLASSES, also, start=(program,))
    assert_four_jobs(folder, result, also)


def test_a_job_that_leaves_the_program_fails_and_is_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    result = sweep(folder, "+sweep=basic", "also=leave,plain,leave", "num_steps=2")
    assert result.returncode == 1
    statuses = [row["status"] for row in rows(folder)]
    assert statuses == ["failed", "completed", "failed"]
    left = "ResultError: the job left the program, sys.exit(0)"
    assert left in rows(folder)[0]["error"]

    resumed = subprocess.run(
        [sys.executable, "-m", "optim_hydra.cli", "resume", str(folder)],
        env={**ENVIRONMENT, "STAY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "3 of 3 jobs completed" in resumed.stdout


def test_optuna_goes_on_past_a_failed_trial(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    result = sweep(
        folder,
        "+sweep=optuna",
        "optim@critic.optim=choice(adamw,sgd)",
        "critic.optim.lr=tag(log,interval(1e-4,1e-1))",
        "also=choice(plain,diverge)",
        "hydra.sweeper.n_trials=6",
    )
    found = jobs(folder)
    assert len(found) == 6
    failed = [job for job in found if job["status"] == "failed"]
    assert 0 < len(failed) < 6
    assert {job["error"] for job in failed} == {
        "ResultError: the job returned nan",
    }
    assert all("also=diverge" in job["overrides"] for job in failed)
    assert result.returncode == 1
    assert f"{len(failed)} failed" in result.stdout


def test_a_sweep_is_reported_while_it_runs_and_goes_on_when_killed(
    whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    endless = "num_steps=4,1000000"
    chosen = ["-m", "+sweep=basic", CLASSES, "seed=0,1", endless]
    with subprocess.Popen(
        [sys.executable, PROGRAM, *chosen, f"hydra.sweep.dir={folder}"],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            while len(jobs(folder)) < 2:
                assert running.poll() is None
                time.sleep(0.2)
            report = [sys.executable, "-m", "optim_hydra.cli", "report", folder]
            shown = subprocess.run(report, capture_output=True, text=True, check=True)
        finally:
            running.kill()
    assert "1 of 8 jobs completed, 6 missing, 1 running" in shown.stdout
    statuses = ["completed", "running", *["missing"] * 6]
    assert [row["status"] for row in rows(folder)] == statuses

    statuses[1] = "failed"
    assert list(collect([folder]).jobs["status"]) == statuses
    before = (folder / "0" / "job.json").stat().st_mtime_ns
    resume = [sys.executable, "-m", "optim_hydra.cli", "resume", folder]
    result = subprocess.run(
        [*resume, "hydra.verbose=true"],
        env={**ENVIRONMENT, "STAY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert (folder / "0" / "job.json").stat().st_mtime_ns == before
    assert "job 0 was done before" in result.stdout + result.stderr
    found, expected = ([job["result"] for job in jobs(at)] for at in (folder, whole))
    assert found == [result for result in expected for _ in endless.split(",")]
    # What the killed job had logged is gone.
    for number in range(8):
        places = (folder / str(number), whole / str(number // 2))
        logged = [place / "metrics.csv" for place in places]
        assert logged[0].read_text() == logged[1].read_text()
