"""Packages are listed by their names, and nothing that is to be copied is cut."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

Command = Callable[..., Result]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *args: CliRunner().invoke(app, args)


@pytest.mark.parametrize(
    ("pattern", "impls"),
    [
        ("schedulefree", ["schedulefree"]),
        ("ScheduleFree*", ["pytorch_optimizer", "schedulefree"]),
        ("torch", ["torch.optim"]),
        ("torch.optim", ["torch.optim"]),
        ("bitsandbytes.AdamW8bit", ["bitsandbytes.optim"]),
        ("torchao.*.AdamW8bit", ["torchao.optim"]),
    ],
)
def test_a_package_is_found_by_its_name(
    command: Command, pattern: str, impls: list[str]
) -> None:
    result = command("list", pattern, "--json")
    assert result.exit_code == 0, result.exception
    rows = json.loads(result.stdout)["optimizers"]
    assert list(dict.fromkeys(row["impl"] for row in rows)) == impls
    if pattern == "schedulefree":
        assert len(rows) == 9


def test_names_of_classes_are_whole_in_a_narrow_terminal(command: Command) -> None:
    lines = command("list", "schedulefree").stdout.splitlines()
    assert " AdamWScheduleFreeReference     16 " in "\n".join(lines)
    table = [line for line in lines if not line.startswith("not installed: ")]
    assert max(map(len, table)) <= 80


def test_keys_are_whole_in_a_narrow_terminal(command: Command) -> None:
    lines = command("show", "lion_pytorch.Lion").stdout.splitlines()
    assert lines[3:9] == [
        "  set by, and the default:",
        "    lr: 0.0001",
        "    betas: (0.9, 0.99)",
        "    weight_decay: 0.0",
        "    override_optimizer_config.use_triton: False",
        "    override_optimizer_config.decoupled_weight_decay: False",
    ]


def test_what_is_not_read_is_said_in_a_narrow_terminal(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = command("show", "pytorch_optimizer.PNM").stdout.splitlines()
    assert "    eps, by nothing: it is not read: 1e-08" in lines


def test_the_optimizer_that_another_wraps_is_among_its_arguments(
    command: Command,
) -> None:
    lines = command("show", "pytorch_optimizer.Lookahead").stdout.splitlines()
    rows = [" ".join(line.split()) for line in lines]
    assert "optimizer must be given override_optimizer_config.optimizer" in rows
