"""`optim-hydra list` and `show` tell what is here, what it needs and how to begin."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from torch import nn
from typer.testing import CliRunner

from optim_hydra import build_optimizer
from optim_hydra.cli.app import app
from optim_hydra.cli.catalogue import MODULES, catalogue
from optim_hydra.cli.show import describe, yaml_of

Command = Callable[..., Result]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: str) -> Result:
        return CliRunner().invoke(app, list(args))

    return run


def stripped(result: Result) -> list[str]:
    assert result.exit_code == 0, result.exception
    return [line.rstrip() for line in result.output.splitlines()]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that says something and fails at import."""
    text = "print('noise')\nraise OSError('libhip.so: cannot open\\nmore')\n"
    (tmp_path / "madgrad.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_pattern_of_a_path_lists_a_package(command: Command, broken) -> None:
    lines = stripped(command("list", "torch.optim.*a*grad*"))
    assert lines[1:] == [
        "",
        " class    bytes  what it is",
        " ─────────────────────────────────────────────",
        " Adagrad      4  Implements Adagrad algorithm.",
        "",
    ]
    assert lines[0].startswith("torch.optim 2.")
    needy = stripped(command("list", "TORCH.*spars*"))
    assert needy[2:-1] == [
        " class       needs             what it is",
        " " + "─" * 98,
        " SparseAdam  sparse gradients  SparseAdam implements a masked version of the"
        " Adam algorithm",
        "                               suitable for sparse gradients.",
    ]


def test_a_package_that_fails_is_one_line_and_the_others_are_listed(
    command: Command, broken
) -> None:
    lines = stripped(command("list", "[lm]*.Lion*"))
    assert lines[-1].startswith("not installed: ") or "Lion" in lines[-2]
    text = "\n".join(lines)
    assert (
        "madgrad  fails while it is imported: OSError: libhip.so: cannot open" in text
    )
    assert "noise" not in text
    assert " Lion       4" in text
    assert "torch.optim" not in text


def test_json_has_every_class_and_what_is_missing(command: Command) -> None:
    data = json.loads(command("list", "*.AdamW8bit", "--json").stdout)
    rows = {row["impl"]: row for row in data["optimizers"]}
    assert set(rows) == {"torchao.optim", "bitsandbytes.optim"}
    codes_and_scales = 2 * (1 + 4 / 256)
    for row in rows.values():
        assert row["name"] == "AdamW8bit"
        assert 0 < row["bytes_per_parameter"] - codes_and_scales < 0.04
    assert data["failed"] == {}
    installed = {package.impl for package in catalogue("*") if package.version}
    assert set(data["not_installed"]) == set(MODULES) - installed


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("torch.optim.*Adamm", ": did you mean Adam, RAdam, NAdam?"),
        ("torch.optim.*qqq", ": looked in torch.optim"),
        (
            "schedulefre",
            ": did you mean schedulefree, SGDScheduleFree, ScheduleFreeSGD?",
        ),
        ("nowhere.optim.*", f": looked in {', '.join(MODULES)}"),
        ("kron_torch.*", ": pip install kron-torch"),
        ("kron_torch", ": pip install kron-torch"),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(
    command: Command, pattern: str, message: str
) -> None:
    if "kron" in pattern and importlib.util.find_spec("kron_torch"):
        pytest.skip("kron-torch is installed here")
    result = command("list", pattern)
    assert result.exit_code == 1
    assert str(result.exception) == (f"no optimizer here matches {pattern!r}{message}")


def test_show_tells_all_of_a_class(command: Command) -> None:
    lines = stripped(command("show", "lion_pytorch.Lion"))
    assert lines == [
        "lion_pytorch.Lion 0.2.5",
        "  state: 4 bytes for each parameter (float32, a matrix of 256 x 256)",
        "  weight decay: decoupled, weights shrink by lr * weight_decay each step",
        "",
        " argument                default      set by",
        " " + "─" * 85,
        " lr                      0.0001       lr",
        " betas                   (0.9, 0.99)  betas",
        " weight_decay            0.0          weight_decay",
        " use_triton              False        override_optimizer_config.use_triton",
        " decoupled_weight_decay  False       "
        " override_optimizer_config.decoupled_weight_decay",
        "",
        "to start with:",
        "# conf/optim/my_lion.yaml",
        "defaults: [base_optim, _self_]",
        "optimizer_impl: lion_pytorch",
        "optimizer: Lion",
        "lr: 0.0001",
        "weight_decay: 0.0",
        "betas:",
        "- 0.9",
        "- 0.99",
    ]


def test_show_names_needs_and_what_to_write(command: Command) -> None:
    lbfgs = stripped(command("show", "LBFGS"))
    assert lbfgs[1:6] == [
        "  Implements L-BFGS algorithm.",
        "  state: not known, it grows with the losses that the closure returns",
        "  weight decay: none",
        "  needs closure: optimizer.step(closure), where closure() clears the"
        " gradients, computes the loss, calls backward() and returns the loss, in the"
        " training loop, which says so by provides=['closure']",
        "  needs all parameters in one group",
    ]
    data = json.loads(command("show", "pytorch_optimizer.Lookahead", "--json").stdout)
    assert data["needs"] == {
        "another optimizer": "override_optimizer_config.optimizer: {optimizer: AdamW}"
    }
    assert data["weight_decay"] == "that of the class it wraps"
    assert data["bytes_per_parameter"] == pytest.approx(12, rel=1e-4)
    assert data["arguments"][0] == {
        "name": "optimizer",
        "default": None,
        "required": True,
        "set_by": ["override_optimizer_config.optimizer"],
    }
    assert data["arguments"][1] == {
        "name": "k",
        "default": "5",
        "required": False,
        "set_by": ["override_optimizer_config.k"],
    }
    adamw = json.loads(command("show", "AdamW", "--json").stdout)
    foreach = next(a for a in adamw["arguments"] if a["name"] == "foreach")
    assert foreach["set_by"] == [
        "implementation",
        "override_optimizer_config.foreach",
    ]


def test_a_name_of_several_packages_is_asked_back(command: Command) -> None:
    result = command("show", "AdamW8bit")
    assert str(result.exception) == (
        "2 packages have AdamW8bit: give one of bitsandbytes.optim.AdamW8bit,"
        " torchao.optim.AdamW8bit"
    )
    assert describe("AdamWScheduleFree").impl == "schedulefree"
    near = command("show", "Prodigi")
    assert str(near.exception) == (
        "no package here has an optimizer Prodigi: did you mean Prodigy?"
    )
    wrong = command("show", "torch.optim.Adamw")
    assert str(wrong.exception).endswith("did you mean AdamW, Adam, RAdam? @ optimizer")


@pytest.mark.parametrize(
    "target",
    [
        "torch.optim.AdamW",
        "torch.optim.Muon",
        "torch.optim.SparseAdam",
        "bitsandbytes.optim.LARS",
        "torchao.optim._AdamW",
        "pytorch_optimizer.AdEMAMix",
        "pytorch_optimizer.SAM",
        "transformers.optimization.Adafactor",
    ],
)
def test_the_yaml_to_start_with_builds_as_a_group(compose, target: str) -> None:
    shown = describe(target)
    assert shown.failed == ""
    files = {"optim/mine.yaml": yaml_of(shown)}
    yaml_text = "defaults:\n  - optim@actor.optim: mine\n  - _self_\n"
    config = compose(yaml=yaml_text, files=files)
    provides = ["closure_after_backward", "sparse_gradients"]
    built = build_optimizer(nn.Linear(8, 8), config.actor.optim, provides=provides)
    held = [type(each) for each in getattr(built, "optimizers", [built])]
    assert shown.cls in held


def test_a_class_that_needs_more_says_so_in_the_yaml() -> None:
    shown = describe("pytorch_optimizer.Ranger21")
    assert "num_iterations: ???" in yaml_of(shown)
    assert yaml_of(shown).splitlines()[:3] == [
        "# conf/optim/my_ranger21.yaml",
        "# not yet: 2 problems:",
        "#   - no value is given (???): set num_iterations @"
        " override_optimizer_config.num_iterations",
    ]
    assert yaml.safe_load(yaml_of(shown))["optimizer"] == "Ranger21"
