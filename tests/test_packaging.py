"""The groups are found from the wheel and from the editable install, anywhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """\
import hydra, pathlib, sys
import optim_hydra, optim_hydra.conf
from torch import nn

with hydra.initialize(version_base=None, config_path=None):
    overrides = ["optim@critic.optim=sgd", "+experiment=both_sgd", *sys.argv[1:]]
    cfg = optim_hydra.compose("actor_critic", overrides)
optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), cfg.actor.optim)
print(type(optimizer).__name__, cfg.actor.optim.lr)
print(pathlib.Path(optim_hydra.__file__).parent)
print(pathlib.Path(optim_hydra.conf.__file__).parent)
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # A copy, so that the build leaves nothing in the checkout.
    source.mkdir()
    for name in ("optim_hydra", "conf"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = ["wheel", "--no-deps", "--no-build-isolation", "-w", folder, source]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_groups_the_types_and_the_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    conf = ROOT / "conf"
    files = [path.relative_to(conf) for path in conf.rglob("*.yaml")]
    assert {f"optim_hydra/conf/{file}" for file in files} <= names
    pages = ("page.html", "page.css", "page.js", "page_charts.js")
    assert {f"optim_hydra/sweep/{file}" for file in pages} <= names
    assert "optim_hydra/py.typed" in names
    assert "optim_hydra/conf/optim.schema.json" in names
    assert "optim_hydra_cli/app.py" in names
    assert "optim_hydra/hydra_plugins/optim_hydra_plugins.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "examples"))]


def test_the_installed_wheel_composes_from_a_foreign_folder(
    wheel: Path, tmp_path: Path, run_python
) -> None:
    site = tmp_path / "site"
    command = ["install", "--no-deps", "--target", site, wheel]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    for extra in ([], ["hydra.searchpath=[pkg://optim_hydra.conf]"]):
        result = run_python("-c", PROGRAM, *extra, PYTHONPATH=str(site))
        assert result.returncode == 0, result.stderr
        expected = [
            "SGD 0.01",
            str(site / "optim_hydra"),
            str(site / "optim_hydra/conf"),
        ]
        assert result.stdout.splitlines() == expected
        assert "is not available" not in result.stderr


def test_the_editable_install_composes_from_a_foreign_folder(run_python) -> None:
    result = run_python("-c", PROGRAM)
    assert result.returncode == 0, result.stderr
    expected = ["SGD 0.01", str(ROOT / "optim_hydra"), str(ROOT / "conf")]
    assert result.stdout.splitlines() == expected
