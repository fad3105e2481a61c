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


def assert_four_jobs(folder: Path, result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 0, result.stdout + result.stderr
    found = jobs(folder)
    assert [job["status"] for job in found] == ["completed"] * 4
    classes = [job["nodes"]["critic.optim"]["classes"][0]["class"] for job in found]
    names = [name.rpartition(".")[2] for name in classes]
    assert names == ["AdamW", "AdamW", "SGD", "SGD"]
    seeds = [text for job in found for text in job["overrides"] if "seed=" in text]
    assert seeds == ["seed=0", "seed=1"] * 2
    table = rows(folder)
    assert [row["job"] for row in table] == ["0", "1", "2", "3"]
    assert [float(row["result"]) for row in table] == [job["result"] for job in found]
    assert list(pd.read_parquet(folder / "results.parquet")["job"]) == list("0123")
    assert (folder / "report.html").stat().st_size > 1_000_000
    assert "4 of 4 jobs completed" in result.stdout
    assert "sweep: 4 of 4 jobs done" in result.stdout + result.stderr


@pytest.mark.parametrize("launcher", ["basic", "joblib", "submitit"])
def test_four_jobs_run_and_are_reported(launcher: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    result = sweep(folder, f"+sweep={launcher}", CLASSES, "seed=0,1")
    assert_four_jobs(folder, result)
    processes = {job["pid"] for job in jobs(folder)}
    expected = {"basic": {1}, "joblib": {2}, "submitit": {4}}
    assert len(processes) in expected[launcher]


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
    folder = tmp_path / "out"
    result = sweep(
        folder, "+sweep=ray", CLASSES, "seed=0,1", "also=ray", start=(program,)
    )
    assert_four_jobs(folder, result)


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


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_a_job_that_fails_is_a_row_and_the_others_run(
    launcher: str, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    chosen = (f"+sweep={launcher}", "actor.optim.lr=1e-3,-1,1e-2", "also=plain,diverge")
    result = sweep(folder, *chosen)
    assert result.returncode == 1
    assert [row["status"] for row in rows(folder)] == [
        "completed",
        "failed",
        "failed",
        "failed",
        "completed",
        "failed",
    ]
    errors = [row["error"] for row in rows(folder)]
    refused = "ConfigError: -1.0 is not a finite float >= 0 @ actor.optim.lr"
    returned = "ResultError: the job returned nan"
    assert errors == ["", returned, refused, refused, "", returned]
    assert "2 of 6 jobs completed, 4 failed" in result.stdout
    assert [row["result"] for row in rows(folder)][1:4] == ["", "", ""]


def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    chosen = (CLASSES, "seed=0,1", "num_steps=4")
    whole = tmp_path / "whole"
    assert sweep(whole, "+sweep=basic", *chosen).returncode == 0

    folder = tmp_path / "killed"
    killed = sweep(folder, "+sweep=basic", *chosen, "also=plain,kill")
    assert killed.returncode == -9
    assert [job["status"] for job in jobs(folder)] == ["completed", "running"]
    before = [path.stat().st_mtime_ns for path in folder.glob("0/job.json")]
    report = [sys.executable, "-m", "optim_hydra.cli", "report", folder]
    shown = subprocess.run(report, capture_output=True, text=True, check=True)
    assert "1 of 8 jobs completed, 6 missing, 1 failed" in shown.stdout

    resume = [sys.executable, "-m", "optim_hydra.cli", "resume", folder, "also=plain"]
    result = subprocess.run(
        resume, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert [path.stat().st_mtime_ns for path in folder.glob("0/job.json")] == before
    assert "job 0 was done before" in result.stdout + result.stderr
    assert [job["result"] for job in jobs(folder)][:4] == [
        job["result"] for job in jobs(whole)
    ]


def test_a_report_is_made_while_the_sweep_runs(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    command = [sys.executable, PROGRAM, "-m", "+sweep=basic", "num_steps=4,1000000"]
    with subprocess.Popen(
        [*command, f"hydra.sweep.dir={folder}"],
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
    assert "1 of 2 jobs completed, 1 running" in shown.stdout
    statuses = [row["status"] for row in rows(folder)]
    assert statuses == ["completed", "running"]
