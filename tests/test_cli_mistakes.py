"""What is typed to `check` by mistake is answered by what to type instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

Command = Callable[..., Result]
CONF = Path(__file__).parents[1] / "conf"
SFT = str(CONF / "sft.yaml")


@pytest.fixture
def command() -> Command:
    return lambda *args: CliRunner().invoke(app, args)


def test_the_cause_of_what_hydra_refuses_is_told(command: Command) -> None:
    result = command("check", SFT, "optim.lr=abc")
    assert str(result.exception) == (
        f"{SFT} can't be composed: Error merging override optim.lr=abc:"
        " Value 'abc' of type 'str' could not be converted to Float,"
        " full_key: optim.lr, object_type=OptimConfig"
    )


def test_a_file_of_the_group_is_no_primary_config(command: Command) -> None:
    file = CONF / "optim" / "adamw.yaml"
    assert str(command("check", str(file)).exception) == (
        f"{file} is a choice of the group optim: give the primary config of an app and"
        " the override optim=adamw, or optim@MODULE.optim=adamw"
    )


def test_a_program_is_no_config(command: Command) -> None:
    expected = f"{__file__} is no YAML file: give the app's primary config"
    assert str(command("check", __file__).exception) == expected


def test_a_misspelt_option_is_no_override(command: Command) -> None:
    result = command("check", SFT, "--modle", "torch.nn.Linear:4,2")
    assert result.exit_code == 2
    assert "No such option: --modle" in result.output
    assert "--model" in result.output


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    file = tmp_path / "trainer.yaml"
    file.write_text("optim: {_target_: their.OptimizerConfig, lr: 1e-3}\n")
    return str(file)


def test_a_model_for_nobody_is_refused(command: Command, foreign: str) -> None:
    result = command("check", foreign, "--model", "torch.nn.Linear:4,2")
    assert str(result.exception) == (
        "--model is for nodes of this library, and the config has none"
    )


def test_steps_for_nobody_are_told(command: Command, foreign: str) -> None:
    result = command("check", foreign, "--steps", "10")
    last = result.stdout.splitlines()[-1]
    assert last == (
        "warning: --steps is for nodes of this library, and the config has none"
    )


def test_the_class_that_another_wraps_is_no_orphan(command: Command) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = command(
            "check",
            SFT,
            "optim.optimizer_impl=pytorch_optimizer",
            "optim.optimizer=Lookahead",
            "optim.override_optimizer_config={optimizer: {optimizer: AdamW}}",
        )
    assert result.exit_code == 0
    assert "warning" not in result.stdout


def test_what_the_training_loop_has_to_keep_is_told(command: Command) -> None:
    overrides = ["optim.optimizer=LBFGS", "optim.clip_grad=null"]
    assert command("check", SFT, *overrides).stdout.splitlines()[2] == (
        "  LBFGS needs optimizer.step(closure), where closure() clears the gradients,"
        " computes the loss, calls backward() and returns the loss, in the training"
        " loop, which says so by provides=['closure']"
    )


BROKEN = {
    "binary": (b"\xff\xfe", "'utf-8' codec can't decode byte 0xff in position 0:"),
    "syntax": (b"optim: [1", "while parsing a flow sequence\n"),
    "twice": (b"optim: {}\noptim: {}\n", "while constructing a mapping\n"),
    "object": (b"a: !!python/name:os.system", "could not determine a constructor"),
    "circle": (b"optim: &a {lr: *a}", "it is too deep, or goes round in a circle"),
    "deep": (b"a: " + b"[" * 3000 + b"]" * 3000, "it is too deep, or goes round in"),
    "defaults": (b"defaults: 5", "Invalid defaults list in 'defaults', defaults must"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named(command: Command, tmp_path: Path, name: str) -> None:
    text, message = BROKEN[name]
    file = tmp_path / f"{name}.yaml"
    file.write_bytes(text)
    result = command("check", str(file))
    assert result.exit_code == 1
    assert str(result.exception).startswith(f"{file} can't be composed: {message}")


def test_a_group_of_a_number_is_refused(command: Command) -> None:
    assert str(command("check", SFT, "optim=5").exception) == (
        f"{SFT} can't be composed: Config group override must be a string or a list."
        " Got int"
    )


def test_a_file_that_hydra_would_not_find_is_renamed(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "app.yml"
    file.write_text("optim: {lr: 0.1}\n")
    assert str(command("check", str(file)).exception) == (
        f"Hydra reads no .yml: rename {file} to app.yaml"
    )


def test_a_link_to_nothing_is_not_offered(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.symlink_to(tmp_path / "nowhere.yaml")
    result = command("check", str(file))
    assert str(result.exception) == f"there is no config {file}"


def test_a_plain_node_called_optim_is_read(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("actor: {optim: {_target_: torch.optim.SGD, lr: 0.1}}\n")
    assert command("check", str(file)).stdout == (
        "actor.optim: fits together\n  torch.optim.SGD(lr=0.1), decay is L2\n"
    )
