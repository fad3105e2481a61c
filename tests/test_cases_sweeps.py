"""Sweeps and their launchers, as public bug reports met them.

Cases: B109, B111, B112, B115, B116.
"""

from __future__ import annotations

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
    return torch.tensor(cfg.actor.optim.lr)


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
    result = run_python(
        "train.py",
        "-m",
        f"+sweep={launcher}",
        "actor.optim.lr=1e-3,-1,1e-2",
        "hydra.sweep.dir=out",
    )
    assert result.returncode == 1
    found = records(tmp_path / "out")
    assert [job["status"] for job in found] == ["completed", "failed", "completed"]
    assert [job["overrides"][-1] for job in found] == [
        "actor.optim.lr=0.001",
        "actor.optim.lr=-1",
        "actor.optim.lr=0.01",
    ]
    assert found[1]["error"] == (
        "ConfigError: -1.0 is not a finite float >= 0 @ actor.optim.lr"
    )


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
    write(tmp_path, train_py=TRAINING, config_yaml=config)
    rates = [1e-3, 2e-3, 3e-3, 4e-3]
    swept = f"actor.optim.lr={','.join(map(str, rates))}"
    result = run_python("train.py", "-m", swept, "hydra.sweep.dir=out")
    assert result.returncode == 0, result.stderr
    found = records(tmp_path / "out")
    assert len({job["pid"] for job in found}) == 2
    assert [job["result"] for job in found] == pytest.approx(rates)


def test_B116_results_are_plain_numbers_in_the_order_of_the_jobs(
    tmp_path: Path, run_python: Run
) -> None:
    value = plain_result(torch.tensor(0.25))
    assert value == 0.25
    assert type(value) is float
    with pytest.raises(ResultError) as caught:
        plain_result({"accuracy": torch.ones(2)})
    assert str(caught.value) == (
        "accuracy has 2 elements: log or return one number, such as a mean"
    )
    write(tmp_path, train_py=TRAINING, config_yaml=ACTOR)
    swept = "actor.optim.lr=1e-3,1e-2"
    result = run_python("train.py", "-m", "+sweep=basic", swept, "hydra.sweep.dir=out")
    assert result.returncode == 0, result.stderr
    found = [job["result"] for job in records(tmp_path / "out")]
    assert found == pytest.approx([1e-3, 1e-2])


def test_B116_kin_a_tensor_of_several_elements_is_no_result(
    tmp_path: Path, run_python: Run
) -> None:
    program = TRAINING.replace("torch.tensor(cfg.actor.optim.lr)", "torch.ones(3)")
    write(tmp_path, train_py=program, config_yaml=ACTOR)
    result = run_python("train.py", "-m", "actor.optim.lr=1e-3,1e-2")
    assert result.returncode == 1
    assert "result has 3 elements: log or return one number" in result.stderr
