"""`optim-hydra migrate` looks at all files of a run, and asks until it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

Migrate = Callable[..., Result]
NODE = """\
actor:
  optim:
    _target_: verl.workers.config.McoreOptimizerConfig
    lr: 1e-5
    min_lr: 1e-6
    lr_decay_style: cosine
"""
AT = "laid over conf/config.yaml:3"


@pytest.fixture
def migrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Migrate:
    """Run the command for verl in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    Path("conf/config.yaml").write_text(NODE)

    def run(*args: str) -> Result:
        return CliRunner().invoke(app, ["migrate", "--from", "verl", *args])

    return run


def test_a_half_is_never_made_and_told_again(migrate: Migrate) -> None:
    file = Path("conf/config.yaml")
    text = f"{NODE}    override_optimizer_config: {{optimizer_cpu_offload: true}}\n"
    file.write_text(text)
    told = (
        "1 to decide:\n"
        "  conf/config.yaml:7: actor.optim.override_optimizer_config"
        ".optimizer_cpu_offload: optimizer_cpu_offload is an argument of Megatron's"
        " optimizer config: remove it, or write an argument of AdamW; until then the"
        " node actor.optim stays as it is\n"
    )
    for args in ((".",), (".",), ("--check", ".")):
        result = migrate(*args)
        verb = "would change" if "--check" in args else "changed"
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == f"{told}{verb} 0 files\n"
        assert file.read_text() == text
    file.write_text(NODE)
    assert migrate(".").exit_code == 0
    assert "_target_: optim_hydra.build" in file.read_text()
    assert migrate("--check", ".").exit_code == 0


@pytest.mark.parametrize(
    ("words", "why", "decided"),
    [
        (
            "actor.optim.lr=1e-4",
            f"{AT} it has min_lr_ratio: 0.01 and would get min_lr_ratio: 0.1: write"
            " actor.optim.min_lr_ratio=0.01 here, too",
            "actor.optim.lr=1e-4 actor.optim.min_lr_ratio=0.01",
        ),
        (
            "a.actor.optim.lr=$LR",
            f"{AT} min_lr is an absolute rate and lr is not known here: write"
            " min_lr_ratio, a share of lr",
            "a.actor.optim.lr=$LR a.actor.optim.min_lr_ratio=0.2",
        ),
        (
            "actor.optim.total_training_steps=29 actor.optim.lr_warmup_steps_ratio=0.5",
            "",
            "",
        ),
        ("critic.optim.lr=1e-4", "", ""),
        ("actor.optim.lr=1e-5 actor.optim.lr_decay_style=linear", "", ""),
    ],
)
def test_a_script_that_would_come_to_something_else(
    migrate: Migrate, words: str, why: str, decided: str
) -> None:
    script, file = Path("run.sh"), Path("conf/config.yaml")
    script.write_text(f"python train.py {words}\n")
    if why:
        at = words.partition(".lr=")[0]
        told = f"1 to decide:\n  run.sh:1: {at}: {why}; until then both stay as they"
        for _ in range(2):
            result = migrate(".")
            assert result.exit_code == 1
            assert result.stderr == f"{told} are\nchanged 0 files\n"
            assert file.read_text() == NODE
        script.write_text(f"python train.py {decided}\n")
    result = migrate(".")
    assert (result.exit_code, result.stderr.count("changed")) == (0, 1)
    assert "min_lr_ratio: 0.1" in file.read_text()


def test_a_part_laid_over_a_group(migrate: Migrate) -> None:
    Path("conf/optim").mkdir()
    Path("conf/config.yaml").rename("old.txt")
    group = Path("conf/optim/megatron.yaml")
    group.write_text("lr: 1e-3\nmin_lr: 1e-5\nlr_decay_style: cosine\n")
    part = Path("conf/actor.yaml")
    part.write_text("defaults: [optim@optim: megatron]\noptim:\n  lr: 1e-4\n")
    result = migrate("conf")
    assert result.exit_code == 1
    assert result.stderr == (
        "1 to decide:\n"
        "  conf/actor.yaml:3: optim: laid over conf/optim/megatron.yaml:1 it has"
        " min_lr_ratio: 0.1 and would get min_lr_ratio: 0.01: write min_lr_ratio: 0.1"
        " here, too; until then both stay as they are\n"
        "changed 0 files\n"
    )
    part.write_text(f"{part.read_text()}  min_lr_ratio: 0.1\n")
    assert migrate("conf").exit_code == 0
    assert "min_lr_ratio: 0.01\n" in group.read_text()


def test_a_group_whose_file_is_converted_may_be_chosen(migrate: Migrate) -> None:
    Path("conf/optim").mkdir()
    Path("conf/optim/megatron.yaml").write_text("lr: 1e-3\nmin_lr: 0.0\n")
    Path("run.sh").write_text("python train.py optim=megatron optim.lr=1e-4\n")
    assert "optim=megatron: megatron is a group of verl" in migrate("run.sh").stderr
    assert migrate(".").exit_code == 0


def test_a_script_for_another_group_has_no_say(migrate: Migrate) -> None:
    Path("run.sh").write_text(
        "python fsdp.py actor.optim.lr=1e-4 actor.optim.num_cycles=0.5\n"
        "python other.py +actor.optim.lr=1e-4\n"
    )
    assert migrate(".").exit_code == 0
    assert "min_lr_ratio: 0.1" in Path("conf/config.yaml").read_text()


def test_what_refers_to_a_key_from_another_file(migrate: Migrate) -> None:
    Path("conf/log.yaml").write_text("floor: ${actor.optim.min_lr}\n")
    Path("run.sh").write_text("train log.style='${actor.optim.lr_decay_style}'\n")
    for _ in range(2):
        result = migrate(".")
        assert result.exit_code == 1
        assert result.stderr == (
            "1 to decide:\n"
            "  conf/log.yaml:1: actor.optim.min_lr: it refers to min_lr, which becomes"
            " min_lr_ratio: 0.1: write 1e-06, or what it is to be; until then the node"
            " at conf/config.yaml:3 stays as it is\n"
            "changed 0 files\n"
        )
    Path("conf/log.yaml").write_text("floor: 1e-6\n")
    assert migrate(".").exit_code == 0
    text = Path("run.sh").read_text()
    assert text == "train log.style='${actor.optim.lr_scheduler_type}'\n"
