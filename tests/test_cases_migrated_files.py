"""Renamed keys in files, which the command rewrites, as public bug reports met them.

Cases: B98, B100, B101, B103, B107, B108.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from omegaconf import OmegaConf
from torch import nn
from typer.testing import CliRunner

import optim_hydra
from case_helpers import BASE, Compose, exact, rates, yaml_of
from optim_hydra.cli.app import app
from optim_hydra.renamed_keys import RENAMED_KEYS

Migrate = Callable[..., Result]
TOTAL = "actor.optim.total_training_steps=100"


@pytest.fixture
def migrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Migrate:
    """Run the command in the folder in which `compose` writes its files."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, ["migrate", *map(str, args)])


@pytest.fixture
def silent() -> None:
    warnings.simplefilter("error", FutureWarning)


@pytest.mark.parametrize("prefix", ["", "+", "++"])
def test_B98_in_a_script(
    migrate: Migrate, compose: Compose, module: nn.Module, prefix: str
) -> None:
    script = Path("run.sh")
    script.write_text(
        f"python train.py \\\n  {prefix}actor.optim.warmup_steps_ratio=0.1 {TOTAL}\n"
    )
    assert migrate(script).exit_code == 0
    words = script.read_text().replace("\\\n", " ").split()[2:]
    config = compose(*words)
    assert rates(module, config, 5) == exact(5e-4)
    assert config.actor.optim.lr_warmup_steps_ratio == 0.1


@pytest.mark.usefixtures("silent")
def test_B98_in_a_file(migrate: Migrate, compose: Compose, module: nn.Module) -> None:
    text = yaml_of("warmup_steps_ratio: 0.1, total_training_steps: 100")
    Path("config.yaml").write_text(f"{BASE}{text}")
    result = migrate("--check", "config.yaml")
    assert result.exit_code == 1
    assert "warmup_steps_ratio" in result.stdout
    assert migrate("config.yaml").exit_code == 0
    config = compose(yaml=Path("config.yaml").read_text())
    assert rates(module, config, 5) == exact(5e-4)


def test_B98_kin_the_whole_project_in_one_command(migrate: Migrate) -> None:
    files = {
        "conf/config.yaml": "actor: {{optim: {{{}: 0.1}}}}\n",
        "conf/optim/mine.yaml": "{}: 0.2\n",
        "scripts/run.sh": "python train.py critic.optim.{}=0.1\n",
        "README.md": "Try `optim.{}=0.1`.\n",
        "sweep.py": 'ARGS = ["optim.{}=0.1"]\n',
        "Makefile": "run:\n\tpython train.py optim.{}=0.1\n",
        "job.sbatch": "#SBATCH -n 1\nsrun python train.py optim.{}=0.1\n",
    }
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text.format("warmup_steps_ratio"))
    assert migrate(".").stderr == "changed 7 files\n"
    for name, text in files.items():
        assert Path(name).read_text() == text.format("lr_warmup_steps_ratio")
    assert migrate("--check", ".").exit_code == 0


@pytest.mark.usefixtures("silent")
def test_B100_renamed_schedule(
    migrate: Migrate, compose: Compose, module: nn.Module
) -> None:
    fields = "total_training_steps: 110, lr_warmup_steps: 10, min_lr_ratio: 0.1"
    Path("config.yaml").write_text(BASE + yaml_of(f"warmup_style: cosine, {fields}"))
    assert migrate("config.yaml").exit_code == 0
    config = compose(yaml=Path("config.yaml").read_text())
    assert config.actor.optim.lr_scheduler_type == "cosine"
    assert rates(module, config, 60) == exact(5.5e-4)


@pytest.mark.parametrize("old", ["warmup_style", "lr_scheduler"])
def test_B100_kin_two_spellings_that_disagree(migrate: Migrate, old: str) -> None:
    text = yaml_of(f"{old}: cosine, lr_scheduler_type: linear")
    Path("config.yaml").write_text(text)
    result = migrate("config.yaml")
    assert (result.exit_code, Path("config.yaml").read_text()) == (1, text)
    assert f"config.yaml:2: actor.optim.{old}: {old}: cosine and" in result.stderr


@pytest.mark.usefixtures("silent")
def test_B101_no_notice_is_left(migrate: Migrate, module: nn.Module) -> None:
    fields = "total_training_steps: 100"
    text = (
        f"actor: {{optim: {{warmup_steps_ratio: 0.1, {fields}}}}}\n"
        f"critic: {{optim: {{warmup_steps_ratio: 0.2, {fields}}}}}\n"
    )
    Path("config.yaml").write_text(text)
    assert migrate("config.yaml").exit_code == 0
    config = OmegaConf.load("config.yaml")
    for part, ratio in (("actor", 0.1), ("critic", 0.2)):
        optimizer = optim_hydra.build_optimizer(module, config[part].optim)
        optim_hydra.build_lr_scheduler(optimizer, config[part].optim)
        assert config[part].optim.lr_warmup_steps_ratio == ratio


@pytest.mark.parametrize(
    ("name", "text", "after"),
    [
        ("a.yaml", "optim: {OLD: 0.1}\n", "optim: {NEW: 0.1}\n"),
        ("a.sh", "run optim.OLD=0.1\n", "run optim.NEW=0.1\n"),
        ("a.sh", "run 'optim={OLD: 0.1}'\n", "run 'optim={NEW: 0.1}'\n"),
        ("a.py", '["+x.optim.OLD=0.1"]\n', '["++x.optim.NEW=0.1"]\n'),
    ],
)
def test_B103_after_the_removal(
    migrate: Migrate, monkeypatch: pytest.MonkeyPatch, name: str, text: str, after: str
) -> None:
    old = RENAMED_KEYS["warmup_steps_ratio"]
    gone = replace(old, removed_in=optim_hydra.__version__)
    monkeypatch.setitem(RENAMED_KEYS, old.old, gone)
    Path(name).write_text(text.replace("OLD", old.old))
    assert migrate(name).exit_code == 0
    assert Path(name).read_text() == after.replace("NEW", old.new)


MIN_LR = "lr: 1e-3, min_lr: 1e-5, lr_scheduler_type: cosine, total_training_steps: 100"


@pytest.mark.parametrize("source", ["megatron", "verl"])
def test_B107_rename_with_another_meaning(
    migrate: Migrate, compose: Compose, module: nn.Module, source: str
) -> None:
    text = BASE + yaml_of(MIN_LR)
    Path("config.yaml").write_text(text)
    result = migrate("config.yaml")
    assert (result.exit_code, Path("config.yaml").read_text()) == (1, text)
    assert "write min_lr_ratio, a share of lr (0.01 here)" in result.stderr
    assert migrate("--from", source, "config.yaml").exit_code == 0
    config = compose(yaml=Path("config.yaml").read_text())
    assert config.actor.optim.min_lr_ratio == 0.01
    assert rates(module, config, 100) == exact(1e-5)


@pytest.mark.parametrize("lr", ["", "lr: 0.0, ", "lr: '${lr}', ", "lr: '???', "])
def test_B107_kin_a_rate_whose_lr_is_not_known(migrate: Migrate, lr: str) -> None:
    text = yaml_of(f"{lr}min_lr: 1e-5")
    where = "known here" if "${" in lr else "said beside it"
    Path("config.yaml").write_text(text)
    result = migrate("--from", "megatron", "config.yaml")
    assert (result.exit_code, Path("config.yaml").read_text()) == (1, text)
    assert result.stderr.startswith(
        "1 to decide:\n"
        "  config.yaml:2: actor.optim.min_lr: min_lr is an absolute rate and lr is not"
        f" {where}: write min_lr_ratio, a share of lr\n"
    )


def test_B108_deep_in_the_tree(migrate: Migrate) -> None:
    text = (
        "models:\n"
        "  reward:\n"
        "    heads:\n"
        "      - {optim: {OLD: 0.1}}\n"
        "      - {optim: {lr_warmup_steps_ratio: 0.3}}\n"
        "  warmup_steps_ratio: 0.5 # of the data\n"
    )
    Path("saved.yaml").write_text(text.replace("OLD", "warmup_steps_ratio"))
    assert migrate("saved.yaml").exit_code == 0
    expected = text.replace("OLD", "lr_warmup_steps_ratio")
    assert Path("saved.yaml").read_text() == expected
    assert migrate("saved.yaml").stderr == "changed 0 files\n"


def test_B108_kin_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "saved.yaml").write_text("a: [{optim: {grad_clip: 1}}]\n")
    command = [sys.executable, "-m", "optim_hydra.cli", "migrate", "saved.yaml"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == "changed 1 file\n"
    text = (tmp_path / "saved.yaml").read_text()
    assert text == "a: [{optim: {clip_grad: 1}}]\n"
