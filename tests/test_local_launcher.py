"""Jobs of `hydra/launcher=optim_local`: forks of one process, each with its own end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# It ends with a bare `main()`: a new process must not run the file to have its `main`.
PROGRAM = """\
import os, signal, sys
import optim_hydra

@optim_hydra.main(config_path=None, version_base=None)
def main(cfg):
    torch_was_there = "torch" in sys.modules
    import torch
    print("job", cfg.what, flush=True)
    if cfg.what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if cfg.what == "raise":
        raise ValueError("no such thing")
    if cfg.what == "lambda":
        return {"file": open(__file__)}
    if cfg.what == "children":
        data = torch.utils.data.DataLoader(range(4), num_workers=1)
        return float(sum(int(each) for each in data))
    optim_hydra.log_metrics(0, {"preloaded": torch_was_there, "parent": os.getppid()})
    return float(torch.ones(2).sum())

main()
"""


def run(folder: Path, *what: str, **jobs: int) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(PROGRAM)
    texts = [f"+what={','.join(what)}", f"hydra.sweep.dir={folder / 'out'}"]
    texts += [f"hydra.launcher.{key}={value}" for key, value in jobs.items()]
    command = [sys.executable, "program.py", "-m", "+sweep=local", *texts]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def records(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(p.read_text()) for p in folder.glob("out/*/job.json")]
    return sorted(found, key=lambda record: record["job"])


def test_each_job_is_a_fork_of_a_process_that_has_torch(tmp_path: Path) -> None:
    result = run(tmp_path, "a", "b", "c", n_jobs=2)
    assert result.returncode == 0, result.stderr
    found = records(tmp_path)
    assert [record["result"] for record in found] == [2.0] * 3
    assert len({record["pid"] for record in found}) == 3
    logged = [
        path.read_text().splitlines()[1].split(",")
        for path in sorted(tmp_path.glob("out/*/metrics.csv"))
    ]
    assert {preloaded for _, preloaded, _ in logged} == {"1.0"}
    assert len({parent for _, _, parent in logged}) == 1
    assert [p.name for p in sorted(tmp_path.glob("out/0/*"))] == [
        ".hydra",
        "job.json",
        "metrics.csv",
        "program.log",
    ]


def test_one_bad_job_is_not_the_end(tmp_path: Path) -> None:
    result = run(tmp_path, "kill", "raise", "children", "a", n_jobs=2)
    assert result.returncode == 1
    assert "2 of 4 jobs completed, 2 failed" in result.stdout
    killed, raised, children, plain = records(tmp_path)
    assert killed["status"] == "running"
    assert raised["error"] == "ValueError: no such thing"
    assert (children["result"], plain["result"]) == (6.0, 2.0)
    assert "the process of job 0 was ended by SIGKILL" in result.stderr


@pytest.mark.parametrize("n_jobs", [0])
def test_a_number_of_jobs_is_at_least_one(tmp_path: Path, n_jobs: int) -> None:
    result = run(tmp_path, "a", n_jobs=n_jobs)
    assert result.returncode == 1
    assert "0 is not -1 or an int >= 1 @ hydra.launcher.n_jobs" in result.stderr
