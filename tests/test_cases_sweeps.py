"""Sweeps and their launchers, as public bug reports met them.

Cases: B109, B111, B112, B115, B116.
"""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from case_helpers import BASE, Compose, Run, write
from optim_hydra import (
    OptimConfig,
    assignment_report,
    build_lr_scheduler,
    build_optimizer,
    plain_result,
)
from optim_hydra.sweep.plain_results import ResultError

# It needs no torch, so that many jobs are quick.
READING = """\
import os
import optim_hydra


@optim_hydra.main(config_path=".", config_name="config")
def main(cfg):
    assert cfg.actor.optim._target_ == "optim_hydra.build"  # the resolver's
    return cfg.actor.optim.lr


main()
"""
TRAINING = """\
import optim_hydra


@optim_hydra.main(config_path=".", config_name="config")
def main(cfg):
    import torch
    optim_hydra.build_optimizer(torch.nn.Linear(4, 2), cfg.actor.optim)
    return torch.tensor(cfg.actor.optim.lr if cfg.actor.optim.lr < 1 else torch.nan)


main()
"""
ACTOR = "defaults:\n  - optim@actor.optim: adamw\n  - _self_\n"


def records(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in folder.glob("*/job.json")]
    return sorted(found, key=lambda job: job["job"])


def test_B109_configs_and_reports_pickle(compose: Compose, module: nn.Module) -> None:
    config = compose("actor.optim.lr_scheduler_type=cosine").actor.optim
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config, 10)
    report = assignment_report(optimizer)
    for value in (OptimConfig(lr=1e-3), config, report):
        assert pickle.loads(pickle.dumps(value)) == value
    twin, its = pickle.loads(pickle.dumps((optimizer, scheduler)))
    assert its.state_dict() == scheduler.state_dict()
    assert twin.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]


def test_B111_every_shipped_group_reaches_the_workers(
    tmp_path: Path, run_python: Run
) -> None:
    folder = write(tmp_path, train_py=READING, config_yaml=BASE)
    names = sorted(p.stem for p in Path(__file__).parents[1].glob("conf/optim/*.yaml"))
    result = run_python(
        str(folder / "train.py"),
        "-m",
        "+sweep=joblib",
        f"optim@actor.optim={','.join(names)}",
        "hydra.sweep.dir=out",
    )
    assert result.returncode == 0, result.stderr
    assert [job["status"] for job in records(tmp_path / "out")] == (
        ["completed"] * len(names)
    )


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_B112_one_bad_job_is_one_failed_record(
    launcher: str, tmp_path: Path, run_python: Run
) -> None:
    write(tmp_path, train_py=TRAINING, config_yaml=ACTOR)
    rates = ["0.001", "-1", "2", "0.01"]
    result = run_python(
        "train.py",
        "-m",
        f"+sweep={launcher}",
        f"actor.optim.lr={','.join(rates)}",
        "hydra.sweep.dir=out",
    )
    assert result.returncode == 1
    assert "2 of 4 jobs completed, 2 failed" in result.stdout
    found = records(tmp_path / "out")
    statuses = ["completed", "failed", "failed", "completed"]
    assert [job["status"] for job in found] == statuses
    assert [job["overrides"][-1] for job in found] == [
        f"actor.optim.lr={rate}" for rate in rates
    ]
    errors = [
        "",
        "ConfigError: -1.0 is not a finite float >= 0 @ actor.optim.lr",
        "ResultError: the job returned nan",
        "",
    ]
    assert [job["error"] for job in found] == errors
    # What the tasks return are tensors.
    results = [job["result"] for job in found]
    assert results == [pytest.approx(1e-3), None, None, pytest.approx(1e-2)]
    with (tmp_path / "out" / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == statuses
    assert [row["error"] for row in rows] == errors
    assert [bool(row["result"]) for row in rows] == [True, False, False, True]


def test_B115_a_launcher_in_the_primary_config_runs_in_parallel(
    tmp_path: Path, run_python: Run
) -> None:
    config = (
        "defaults:\n"
        "  - optim@actor.optim: adamw\n"
        "  - _self_\n"
        "  - override hydra/launcher: joblib\n"
        "  - override hydra/callbacks: sweep_report\n"
        "hydra:\n"
        "  launcher: {n_jobs: 2}\n"
    )
    write(tmp_path, train_py=READING, config_yaml=config)
    rates = [1e-3, 2e-3, 3e-3, 4e-3]
    swept = f"actor.optim.lr={','.join(map(str, rates))}"
    result = run_python("train.py", "-m", swept, "hydra.sweep.dir=out")
    assert result.returncode == 0, result.stderr
    found = records(tmp_path / "out")
    assert len({job["pid"] for job in found}) == 2
    assert [job["result"] for job in found] == pytest.approx(rates)


def test_B116_a_result_is_a_plain_number() -> None:
    value = plain_result(torch.tensor(0.25))
    assert value == 0.25
    assert type(value) is float
    with pytest.raises(ResultError) as caught:
        plain_result({"accuracy": torch.ones(2)})
    assert str(caught.value) == (
        "accuracy has 2 elements: log or return one number, such as a mean"
    )


def test_B116_kin_an_array_of_several_elements_is_no_result(
    tmp_path: Path, run_python: Run
) -> None:
    program = READING.replace("return cfg.actor.optim.lr", "return numpy.ones(3)")
    write(tmp_path, train_py=f"import numpy\n{program}", config_yaml=ACTOR)
    result = run_python("train.py", "-m", "actor.optim.lr=1e-3,1e-2")
    assert result.returncode == 1
    assert "result has 3 elements: log or return one number" in result.stderr
