"""Renamed keys in whole programs, as public bug reports met them.

Cases: B98, B101.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from case_helpers import BASE, Run, write

APP = """\
import hydra
import optim_hydra
from torch import nn


@optim_hydra.main(config_path=".", config_name="config", version_base=None)
def main(config):
    for _ in range(3):
        for part in ("actor", "critic"):
            optim = config[part].optim
            optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), optim)
            scheduler = optim_hydra.build_lr_scheduler(optimizer, optim, 100)
            for _ in range(5):
                optimizer.step()
                scheduler.step()
            print(part, f"{optimizer.param_groups[0]['lr']:.6f}")


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return write(tmp_path, app_py=APP, config_yaml=BASE)


def warned(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the keys that the program warned about, in order."""
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if " is now " in line]
    assert all("Warning: " in line for line in lines)
    return [line.partition(" is now ")[0].rpartition(" ")[2] for line in lines]


@pytest.mark.parametrize("prefix", ["", "+", "++"])
def test_B98_on_a_command_line(run_python: Run, app: Path, prefix: str) -> None:
    done = run_python("app.py", f"{prefix}actor.optim.warmup_steps_ratio=0.1")
    assert warned(done) == ["actor.optim.warmup_steps_ratio"]
    assert "lr_warmup_steps_ratio" in done.stderr
    assert "removed in " in done.stderr
    assert done.stdout.count("actor 0.000500") == 3
    (saved,) = app.glob("outputs/*/*/.hydra/config.yaml")
    assert "lr_warmup_steps_ratio: 0.1\n" in saved.read_text()
    assert " warmup_steps_ratio" not in saved.read_text()
    overrides = (saved.parent / "overrides.yaml").read_text()
    assert overrides.strip("-+ \n") == "actor.optim.lr_warmup_steps_ratio=0.1"


def test_B98_kin_shown_config(run_python: Run, app: Path) -> None:
    done = run_python(
        "app.py", "--cfg", "job", "critic.optim.warmup_style=cosine", cwd=app
    )
    assert warned(done) == ["critic.optim.warmup_style"]
    assert done.stdout.count("lr_scheduler_type: cosine") == 1
    assert "warmup_style" not in done.stdout


def test_B98_kin_sweep(run_python: Run, app: Path) -> None:
    sweep = ["actor.optim.warmup_steps_ratio=0.1,0.05", "hydra.sweep.dir=jobs"]
    done = run_python("app.py", "-m", *sweep)
    assert warned(done) == ["actor.optim.warmup_steps_ratio"]
    saved = [(app / f"jobs/{job}/.hydra/config.yaml").read_text() for job in "01"]
    assert "lr_warmup_steps_ratio: 0.1\n" in saved[0]
    assert "lr_warmup_steps_ratio: 0.05\n" in saved[1]


def test_B98_kin_stock_hydra(run_python: Run, app: Path) -> None:
    (app / "app.py").write_text(APP.replace("@optim_hydra.main", "@hydra.main"))
    done = run_python("app.py", "+actor.optim.warmup_steps_ratio=0.1")
    assert warned(done) == ["actor.optim.warmup_steps_ratio"]
    assert done.stdout.count("actor 0.000500") == 3


def test_B101_default_filters(run_python: Run, app: Path) -> None:
    parts = {"actor": 0.1, "critic": 0.2}
    text = BASE + "".join(
        f"{part}: {{optim: {{warmup_steps_ratio: {ratio},"
        " total_training_steps: 100}}\n"
        for part, ratio in parts.items()
    )
    (app / "config.yaml").write_text(text)
    done = run_python("app.py")
    keys = [f"{part}.optim.warmup_steps_ratio" for part in parts]
    assert sorted(warned(done)) == keys
    assert done.stdout.count("actor 0.000500") == 3
    assert done.stdout.count("critic 0.000250") == 3


def test_B101_kin_untyped_nodes(run_python: Run) -> None:
    program = """\
from omegaconf import OmegaConf
from torch import nn
import optim_hydra
optim = {"warmup_steps_ratio": 0.1, "grad_clip": 1.0}
config = OmegaConf.create({"actor": {"optim": optim}, "critic": {"optim": optim}})
for _ in range(3):
    for part in config:
        optim_hydra.build_optimizer(nn.Linear(4, 2), config[part].optim)
"""
    done = run_python("-c", program)
    keys = ("grad_clip", "warmup_steps_ratio")
    expected = [f"{part}.optim.{key}" for part in ("actor", "critic") for key in keys]
    assert sorted(warned(done)) == expected
    assert done.stderr.count("RenamedKeyWarning: ") == 4
