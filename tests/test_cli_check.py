"""`optim-hydra check` says what a config would build, and all that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

ROOT = Path(__file__).parents[1]
MODEL = """\
from torch import nn

def make(width, depth=1, kind="plain"):
    if kind != "plain":
        raise ValueError(f"no kind {kind}")
    layers = [nn.Linear(width, width) for _ in range(depth)]
    return nn.Sequential(nn.Embedding(16, width), *layers, nn.Linear(width, 16))

ready = nn.Linear(4, 2)
number = 3
"""
Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run the command in a folder that has a config and a module with models."""
    (tmp_path / "models_here.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")

    def run(config: Path | str, *args: str) -> Result:
        return CliRunner().invoke(app, ["check", str(config), *args])

    return run


def test_a_node_without_a_model(check: Check) -> None:
    result = check(ROOT / "conf/sft.yaml", "--steps", "1000")
    assert result.output == (
        "optim: fits together\n"
        "  torch.optim.AdamW(lr=0.001, weight_decay=0.01, betas=(0.9, 0.999)), decay is"
        " decoupled\n"
        "  rate of node, cosine: 0 at step 0, 0.001 at step 100 (warmed up),"
        " 0.0006281 at step 500 (50 %), 0.0001 at step 1000 (100 %)\n"
    )
    assert result.exit_code == 0


def test_a_node_with_a_model(check: Check) -> None:
    result = check(
        ROOT / "conf/sft",
        "optim=muon",
        "optim.lr_scheduler_type=constant",
        "optim.min_lr_ratio=null",
        "--steps=200",
        "--model=models_here.make:8, depth=2",
        "--world-size",
        "4",
    )
    lines = [line.rstrip() for line in result.output.splitlines()]
    assert lines == [
        "optim: fits together",
        "  torch.optim.AdamW(lr=0.001, weight_decay=0.1, betas=(0.9, 0.999)), decay is"
        " decoupled",
        "  torch.optim.Muon(lr=0.001, weight_decay=0.1,"
        " adjust_lr_fn='match_rms_adamw'), decay is decoupled",
        "  built for models_here.make:8, depth=2, on the meta device",
        "",
        " group  class  tensors  numbers  lr     decay  rule      names",
        " ────────────────────────────────────────────────────────────────",
        " 0      AdamW  2        256      0.001  0.1              0.weight",
        "                                                         3.weight",
        " 1      AdamW  3        32       0.001  0      no_decay  1.bias",
        "                                                         2.bias",
        "                                                         3.bias",
        " 2      Muon   2        128      0.001  0.1    [0]       1.weight",
        "                                                         2.weight",
        "",
        "  rank 0 of 4: state of 104 parameters: 724 bytes, 6.962 bytes each (FSDP2"
        " gives each rank ceil(rows / ranks) rows of each tensor; rank 0 has the most)",
        "  rate of group 0, group 1 (no_decay), group 2 (param_groups[0]), constant:"
        " 0 at step 0, 0.001 at step 20 (warmed up), 0.001 at step 100 (50 %),"
        " 0.001 at step 200 (100 %)",
    ]


def test_json_has_the_same(check: Check) -> None:
    result = check(
        ROOT / "conf/actor_critic.yaml",
        "--json",
        "--model=critic.optim=torch.nn.Linear:4,2",
        "critic.optim.total_training_steps=100",
    )
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    actor, critic = data["nodes"]
    assert actor["groups"] is None
    assert actor["memory"] is None
    assert actor["rates"] == []
    assert actor["notes"] == [
        "its schedule needs the number of steps: --steps, or total_training_steps"
    ]
    assert critic["memory"] == {
        "world_size": 1,
        "parameters": 10,
        "state_bytes": 88,
        "bytes_per_parameter": 8.8,
        "reason": None,
    }
    assert critic["groups"][0]["names"] == ["weight", "bias"]
    (rate,) = critic["rates"]
    assert rate["at"] == {
        "start": {"step": 0, "lr": 0.0},
        "warmup": {"step": 2, "lr": 0.001},
        "half": {"step": 50, "lr": 0.001 * (1 - 48 / 98)},
        "end": {"step": 100, "lr": 0.0},
    }
    assert data["problems"] == []


def test_all_problems_come_at_once_and_old_keys_warn(check: Check) -> None:
    result = check(
        ROOT / "conf/actor_critic.yaml",
        "actor.optim.warmup_style=cosine",
        "+actor.optim.wd=3",
        "critic.optim.lr=-1",
        "critic.optim.optimizer=Adamm",
    )
    assert result.exit_code == 1
    assert result.stdout == (
        "actor.optim: has problems, see below\n"
        "critic.optim: has problems, see below\n"
        "warning: actor.optim.warmup_style is now lr_scheduler_type (since 0.1.0; the"
        " old key is removed in 1.0.0)\n"
    )
    first, *rest = result.stderr.splitlines()
    assert first == "3 problems:"
    assert rest[:2] == [
        "  - no field wd: write weight_decay @ actor.optim.wd",
        "  - -1.0 is not a finite float >= 0 @ critic.optim.lr",
    ]
    assert rest[2].endswith(
        "has no Adamm: did you mean Adam, RAdam, NAdam? @ critic.optim.optimizer"
    )


def test_what_only_shows_with_a_model_is_a_problem_too(check: Check) -> None:
    result = check(
        ROOT / "conf/sft.yaml",
        "optim.param_groups=[{pattern: 'heads.*', lr: 1}]",
        "--model=models_here.make:8",
        "--steps=10",
    )
    assert result.exit_code == 1
    assert result.stderr == (
        "pattern 'heads.*' matches no parameter (names here are 0.weight, 1.weight,"
        " 1.bias and 2 more) @ optim.param_groups[0]\n"
    )


def test_a_plain_hydra_node_is_checked_with_its_class(
    check: Check, tmp_path: Path
) -> None:
    (tmp_path / "plain.yaml").write_text(
        "optim: {_target_: torch.optim.SGD, lr: 0.1, momentun: 0.9}\n"
    )
    result = check("plain.yaml")
    assert result.exit_code == 1
    assert result.stderr.startswith("SGD takes no momentun: did you mean momentum?")
    fits = check("plain.yaml", "~optim.momentun", "--model=models_here.ready")
    assert fits.exit_code == 0
    assert "torch.optim.SGD(lr=0.1), decay is L2\n" in fits.output
    assert "  state of 10 parameters: 0 bytes, 0 bytes each\n" in fits.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["sft"], "there is no config sft.yaml: did you mean sfts.yaml, empty.yaml?"),
        (["sub"], "there is no config sub.yaml: give one of sub/main_settings.yaml"),
        (["empty"], "no optimizer node among seed: choose one, +optim@MODULE.optim="),
        (["sfts", "nothing.here=1"], "sfts.yaml can't be composed: Could not override"),
        (
            ["sfts", "--model=critic.optim=models_here.make:8"],
            "--model critic.optim=models_here.make:8: no optimizer node critic.optim",
        ),
        (
            ["sfts", "--model=models_here.make:8", "--model=models_here.make:9"],
            "two models for all nodes: models_here.make:8 and models_here.make:9;",
        ),
        (["sfts", "--model=make"], "--model make is no dotted path: write --model ["),
        (
            ["sfts", "--model=models_here.maker"],
            "--model models_here.maker: models_here has no maker: did you mean make?",
        ),
        (
            ["sfts", "--model=models_there.make"],
            "--model models_there.make: models_there can't be imported from ",
        ),
        (
            ["sfts", "--model=models_here.make:8, kind=odd"],
            "--model models_here.make:8, kind=odd fails: ValueError: no kind odd",
        ),
        (
            ["sfts", "--model=models_here.number"],
            "--model models_here.number fails: TypeError: 'int' object is not callable",
        ),
        (
            ["sfts", "--model=builtins.dict"],
            "--model builtins.dict makes a dict, not a torch.nn.Module",
        ),
    ],
)
def test_what_can_not_be_checked_is_said(
    check: Check, tmp_path: Path, args: list[str], message: str
) -> None:
    (tmp_path / "sfts.yaml").write_text("defaults: [optim: adamw, _self_]\n")
    (tmp_path / "empty.yaml").write_text("seed: 0\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/main_settings.yaml").write_text("seed: 0\n")
    result = check(*args)
    assert result.exit_code == 1
    assert str(result.exception).startswith(message)
