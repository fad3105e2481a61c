"""The model that `--model` names: on the meta device, tied as it was, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

MODELS = """\
import torch
from torch import nn

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("mask", torch.ones(3))

class Mute(Exception):
    def __str__(self):
        raise RuntimeError

ready = Tied()

def on_cpu():
    with torch.device("cpu"):
        return Tied()

def talks():
    print("how do you do")
    return nn.Linear(4, 2)

def mute():
    raise Mute

def marked():
    names = ("[/b]", "[red]x", "frozen[/i]")
    model = nn.ParameterDict({n: nn.Parameter(torch.ones(2)) for n in names})
    model["frozen[/i]"].requires_grad_(False)
    return model
"""
Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    (tmp_path / "odd_models.py").write_text(MODELS)
    (tmp_path / "main.yaml").write_text("defaults: [optim: adamw, _self_]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: str) -> Result:
        return CliRunner().invoke(app, ["check", "main.yaml", *args])

    return run


@pytest.mark.parametrize("name", ["Tied", "on_cpu", "ready"])
def test_what_is_tied_counts_once_wherever_it_was_made(check: Check, name: str) -> None:
    result = check(f"--model=odd_models.{name}", "--json")
    (node,) = json.loads(result.stdout)["nodes"]
    assert [row["numbers"] for row in node["groups"]] == [40]
    assert node["memory"]["state_bytes"] == 2 * 4 * 40 + 4


def test_what_a_model_prints_is_not_in_the_output(check: Check) -> None:
    result = check("--model=odd_models.talks", "--json")
    assert json.loads(result.stdout)["nodes"][0]["model"] == "odd_models.talks"
    assert result.stderr == "how do you do\n"


def test_brackets_in_names_are_shown(check: Check) -> None:
    lines = check("--model=odd_models.marked").stdout.splitlines()
    assert lines[6].split() == ["0", "AdamW", "2", "4", "0.001", "0.01", "[/b]"]
    assert lines[7].split() == ["[red]x"]
    assert lines[9].split() == ["frozen:", "frozen[/i]"]


FORM = (
    "write --model [NODE=]package.module.Name[:arguments], such as torch.nn.Linear:4,2"
)
LITERALS = (
    "is no list of literals: write them as in torch.nn.Linear:4,2 or"
    " my.Model:width=64,kind='deep'"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"names no model: {FORM}"),
        ("=", f"names no model: {FORM}"),
        ("optim=", f"names no model: {FORM}"),
        ("odd_models.", f"is no dotted path: {FORM}"),
        ("odd_models.mute", "fails: Mute"),
    ],
)
def test_what_names_no_model_is_refused(check: Check, text: str, message: str) -> None:
    result = check(f"--model={text}")
    assert result.exit_code == 1
    assert str(result.exception) == f"--model {text} {message}"


@pytest.mark.parametrize(
    "arguments",
    [
        "4,2)",
        "4)(2",
        "*[4, 2]",
        "**{'in_features': 4}",
        "(" * 300,
        "__import__('pathlib').Path('ran').touch()",
    ],
)
def test_arguments_are_literals(check: Check, arguments: str) -> None:
    result = check(f"--model=torch.nn.Linear:{arguments}")
    assert str(result.exception) == (
        f"--model torch.nn.Linear:{arguments}: {arguments} {LITERALS}"
    )
    assert not Path("ran").exists()
