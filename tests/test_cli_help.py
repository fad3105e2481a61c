"""The command answers at once for help and completion, and errors are sentences."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from optim_hydra.cli.app import run

COMMANDS = ("check", "list", "migrate", "plot", "report", "resume", "schema", "show")
HELP = """\
import contextlib, io, sys
from optim_hydra_cli.app import run

for arguments in (["--help"], *([name, "--help"] for name in sys.argv[1:])):
    sys.argv = ["optim-hydra", *arguments]
    with contextlib.suppress(SystemExit):
        run()
heavy = {"torch", "hydra", "omegaconf", "optim_hydra", "matplotlib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""


def test_help_imports_neither_torch_nor_hydra(run_fresh) -> None:
    # run_python has torch already.
    result = run_fresh("-c", HELP, *COMMANDS, COLUMNS="80")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage: optim-hydra") == 1 + len(COMMANDS)
    for sentence in (
        "Check the optimizer nodes of an app's config; all problems at once.",
        "List the optimizers that are installed here, by package.",
        "Show what one optimizer takes and needs, and the YAML to start with.",
    ):
        assert sentence in result.stdout


def test_the_shell_completes_commands(run_python) -> None:
    result = run_python(
        "-c",
        "import sys; sys.argv = ['optim-hydra']\n"
        "from optim_hydra_cli.app import run; run()",
        _OPTIM_HYDRA_COMPLETE="complete_bash",
        COMP_WORDS="optim-hydra s",
        COMP_CWORD="1",
    )
    assert result.stdout.split() == ["show", "schema"]


def test_an_error_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["optim-hydra", "check", "conf/sft.yaml"])
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 1
    assert capsys.readouterr().err == "there is no config conf/sft.yaml\n"


def test_a_missing_package_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path
) -> None:
    (tmp_path / "app.yaml").write_text("optim: {lr: 0.1}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    argv = ["optim-hydra", "plot", "app.yaml", "-o", "rates.png"]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 1
    assert capsys.readouterr().err == (
        "import of matplotlib.figure halted; None in sys.modules:"
        " pip install 'optim-hydra[cli]'\n"
    )


def test_a_place_that_can_not_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["optim-hydra", "schema", "--output", "nowhere/optim.schema.json"]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 1
    assert capsys.readouterr().err == (
        "nowhere/optim.schema.json: No such file or directory\n"
    )


def test_signs_that_a_terminal_lacks_are_replaced(run_fresh, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("optim: {lr: 0.1}\n")
    result = run_fresh(
        "-m",
        "optim_hydra.cli",
        "plot",
        str(tmp_path / "app.yaml"),
        PYTHONIOENCODING="ascii",
        COLUMNS="60",
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "optim, node: constant"
    assert lines[2] == " 0.1?" + "?" * 54 + "?"


def test_resume_takes_settings_of_the_launcher(run_fresh) -> None:
    result = run_fresh("-m", "optim_hydra.cli", "resume", "--help", COLUMNS="80")
    assert "Hydra's launcher settings." in result.stdout
