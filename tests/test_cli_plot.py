"""`optim-hydra plot` draws the rates that a run would have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import pytest
from click.testing import Result
from torch import nn
from typer.testing import CliRunner

from optim_hydra import build_lr_scheduler, build_optimizer
from optim_hydra.cli.app import app

ROOT = Path(__file__).parents[1]
Plot = Callable[..., Result]


@pytest.fixture
def plot(monkeypatch: pytest.MonkeyPatch) -> Plot:
    monkeypatch.setenv("COLUMNS", "36")

    def run(*args: str, config: str = "sft") -> Result:
        path = str(ROOT / f"conf/{config}.yaml")
        return CliRunner().invoke(app, ["plot", path, *args])

    return run


def test_a_curve_in_the_terminal(plot: Plot) -> None:
    result = plot(
        "--steps=10",
        "optim.lr_scheduler_type=linear",
        "optim.min_lr_ratio=0",
        "optim.lr_warmup_steps_ratio=0.2",
    )
    assert result.output == (
        "optim, node: linear\n"
        "      ┌────────────────────────────┐\n"
        " 0.001┤    ⢀⠎⠒⠤⣀                   │\n"
        "      │   ⢀⠎    ⠑⠢⢄⡀               │\n"
        "0.0005┤   ⡎        ⠈⠑⠢⢄⣀           │\n"
        "      │  ⡜              ⠉⠒⠤⡀       │\n"
        "      │ ⡜                  ⠈⠑⠢⢄⡀   │\n"
        "     0┤⡜                       ⠈⠑⠤⣀│\n"
        "      └┬────┬────────┬────┬───────┬┘\n"
        "       0    2        5    7      10\n"
        "              optimizer step\n"
    )


def test_json_has_the_rates_of_a_run(plot: Plot) -> None:
    rule = "{pattern: weight, lr_mult: 3, lr_scheduler_type: constant}"
    overrides = [
        "optim.lr_scheduler_type=wsd",
        f"optim.param_groups=[{rule}]",
        "optim.no_decay=[bias]",
    ]
    model = "--model=torch.nn.Linear:4,2"
    result = plot("--steps=50", model, "--json", *overrides)
    assert result.exit_code == 0, result.exception
    drawn = json.loads(result.stdout)
    assert [each["groups"] for each in drawn] == [
        "group 0 (no_decay)",
        "group 1 (param_groups[0])",
    ]
    node = {
        "lr_scheduler_type": "wsd",
        "lr_warmup_steps_ratio": 0.1,
        "min_lr_ratio": 0.1,
        "total_training_steps": 50,
        "no_decay": ["bias"],
        "param_groups": [
            {"pattern": "weight", "lr_mult": 3, "lr_scheduler_type": "constant"}
        ],
    }
    optimizer = build_optimizer(nn.Linear(4, 2), node)
    scheduler = build_lr_scheduler(optimizer, node)
    rates = [scheduler.get_last_lr()]
    for _ in range(50):
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr())
    assert [each["steps"] for each in drawn] == [list(range(51))] * 2
    for index, each in enumerate(drawn):
        assert each["lr"] == pytest.approx([lrs[index] for lrs in rates])


def test_a_picture_of_all_nodes(plot: Plot, tmp_path: Path) -> None:
    output = tmp_path / "new folder/rates.png"
    total = "critic.optim.total_training_steps=100"
    result = plot("-o", str(output), total, config="actor_critic")
    assert result.exit_code == 0, result.exception
    assert result.output == (
        f"rates: {output}\nactor.optim is not drawn: its schedule needs the number of"
        " steps: --steps, or total_training_steps\n"
    )
    picture = matplotlib.image.imread(output)
    assert picture.shape == (600, 1080, 4)
    orange = (picture[..., :3] == [1.0, 0x7F / 255, 0x0E / 255]).all(axis=-1)
    blue = abs(picture[..., :3] - [0x1F / 255, 0x77 / 255, 0xB4 / 255]).max(axis=-1)
    assert (blue < 0.01).sum() > 500  # the one curve that is drawn
    assert orange.sum() == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            [],
            "nothing to draw: optim: its schedule needs the number of steps: --steps,"
            " or total_training_steps",
        ),
        (["optim.lr=-1"], "-1.0 is not a finite float >= 0 @ optim.lr"),
        (
            ["--steps=10", "-o", "rates.txt"],
            "rates.txt is no picture: end it in .png, or one of ",
        ),
    ],
)
def test_what_can_not_be_drawn_is_said(
    plot: Plot, args: list[str], message: str
) -> None:
    result = plot(*args)
    assert result.exit_code == 1
    assert str(result.exception).startswith(message)
