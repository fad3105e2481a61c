"""Whole programs with Hydra, as public bug reports met them.

Cases: B01, B13, B55, B83, B94, B95, B97.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from case_helpers import ACTOR_BASE, BASE, Run, write

APP = """\
from pathlib import Path

import hydra
import optim_hydra
from torch import nn


@optim_hydra.main(config_path=".", config_name="config", version_base=None)
def main(config):
    print("started")
    optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), config.actor.optim)
    group = optimizer.param_groups[0]
    numbers = [group[key] for key in ("lr", "momentum") if key in group]
    out = Path(hydra.core.hydra_config.HydraConfig.get().runtime.output_dir)
    (out / "built.txt").write_text(f"{type(optimizer).__name__} {numbers}")


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return write(tmp_path / "app", app_py=APP, config_yaml=BASE)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("actor.optim.lr=abc", ["actor.optim.lr", "abc"]),
        ("actor.optim.betas=0.9,0.95", ["actor.optim.betas", "Ambiguous"]),
        ("+actor.optim.min_lr=1e-4", ["actor.optim.min_lr", "min_lr_ratio"]),
        ("actor.optim.lr_warmup_steps_ratio=10", ["lr_warmup_steps_ratio", "[0, 1]"]),
        ("+actor.optim.weight_deacy=0.1", ["weight_deacy", "weight_decay"]),
        ("critic.optim=sgd", ["optim@critic.optim=sgd"]),
        ("optim@critic.optim=unknown", ["optim/unknown", "adamw", "sgd"]),
    ],
)
def test_B01_B04_B55_B67_B83_B85_program_ends(
    run_python: Run, app: Path, override: str, words: list[str]
) -> None:
    done = run_python("app.py", override, cwd=app)
    assert done.returncode != 0
    assert "started" not in done.stdout
    assert not list(app.rglob("built.txt"))
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("optimizer", ["Adamw", "surely_missing_pkg.AdamW"])
def test_B13_B16_program_ends(run_python: Run, app: Path, optimizer: str) -> None:
    done = run_python("app.py", f"actor.optim.optimizer={optimizer}", cwd=app)
    assert done.returncode != 0
    assert not list(app.rglob("built.txt"))
    assert optimizer.partition(".")[0] in done.stderr
    assert "actor.optim.optimizer" in done.stderr


def test_B83_kin_program_warns_of_an_orphan(run_python: Run, app: Path) -> None:
    done = run_python("app.py", "+actor.optm.lr=1", cwd=app)
    assert done.returncode == 0
    assert "started" in done.stdout
    assert "nobody reads actor.optm: did you mean optim?" in done.stderr


STOCK = """\
import hydra
import optim_hydra
from torch import nn


@hydra.main(config_path="conf", config_name="mine", version_base=None)
def main(config):
    optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), config.actor.optim)
    print(type(optimizer).__name__, optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("program", [STOCK, STOCK.replace("@hydra", "@optim_hydra")])
def test_B94_search_path_from_another_folder(
    run_python: Run, tmp_path: Path, program: str
) -> None:
    app = write(tmp_path / "app", app_py=program)
    write(app / "conf", mine_yaml=ACTOR_BASE)
    elsewhere = write(tmp_path / "elsewhere")
    override = "hydra.searchpath=[pkg://optim_hydra.conf]"
    done = run_python(str(app / "app.py"), override, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("AdamW 0.001\n")


def test_B94_kin_composed_without_a_program(run_python: Run, tmp_path: Path) -> None:
    conf = write(tmp_path / "conf", mine_yaml=ACTOR_BASE)
    elsewhere = write(tmp_path / "elsewhere")
    program = f"""\
import hydra, optim_hydra
with hydra.initialize_config_dir({str(conf)!r}, version_base=None):
    searchpath = "hydra.searchpath=[pkg://optim_hydra.conf]"
    for overrides in ([searchpath], [searchpath, "optim@actor.optim=sgd"], []):
        config = hydra.compose("mine", overrides)
        print(config.actor.optim.optimizer, config.actor.optim.lr)
"""
    done = run_python("-c", program, cwd=elsewhere)
    assert done.stdout == "AdamW 0.001\nSGD 0.01\nAdamW 0.001\n", done.stderr


def test_B95_no_global_state_outside_of_main(run_fresh: Run) -> None:
    program = """\
import sys
from hydra.core.global_hydra import GlobalHydra
import optim_hydra
from optim_hydra.registration import register
found = [GlobalHydra.instance().is_initialized()]
register()
register()
found.append(GlobalHydra.instance().is_initialized())
assert "torch" not in sys.modules
from omegaconf import OmegaConf
from torch import nn
node = OmegaConf.create({"optimizer": "SGD", "lr": 0.5})
optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), node)
optim_hydra.build_lr_scheduler(optimizer, node)
found.append(GlobalHydra.instance().is_initialized())
print(found, optimizer.param_groups[0]["lr"])
"""
    done = run_fresh("-c", program)
    assert done.stdout == "[False, False, False] 0.5\n", done.stderr


@pytest.mark.parametrize("when", ["before", "inside"])
def test_B95_inside_of_main(run_python: Run, tmp_path: Path, when: str) -> None:
    imports = "import optim_hydra\nfrom optim_hydra.registration import register\n"
    indented = "".join(f"    {line}\n" for line in imports.splitlines())
    program = f"""\
import hydra
from hydra.core.global_hydra import GlobalHydra
from torch import nn
{imports if when == "before" else ""}

@hydra.main(config_path=None, config_name=None, version_base=None)
def main(config):
{indented if when == "inside" else ""}
    before = GlobalHydra.instance().is_initialized()
    register()
    register()
    optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), config.optim)
    print(before, GlobalHydra.instance().is_initialized())
    print(optimizer.param_groups[0]["lr"])

main()
print(GlobalHydra.instance().is_initialized())
"""
    write(tmp_path, app_py=program)
    done = run_python("app.py", "+optim.lr=0.5", "+optim.optimizer=SGD")
    assert done.stdout.endswith("True True\n0.5\nFalse\n"), done.stderr


def test_B97_sweep_over_the_class_and_a_key_of_one(run_python: Run, app: Path) -> None:
    sweep = [
        "optim@actor.optim=adamw,sgd",
        "++actor.optim.override_optimizer_config.momentum=0.5",
    ]
    done = run_python("app.py", "-m", *sweep, "hydra.sweep.dir=jobs", cwd=app)
    assert done.stdout.count("started") == 2
    assert done.returncode != 0
    assert "AdamW takes no momentum" in done.stderr
    assert "@ actor.optim.override_optimizer_config.momentum" in done.stderr
    jobs = app / "jobs"
    assert sorted(p.name for p in jobs.iterdir() if p.is_dir()) == ["0", "1"]
    assert not (jobs / "0" / "built.txt").exists()
    assert (jobs / "1" / "built.txt").read_text() == "SGD [0.01, 0.5]"


def test_B97_kin_dropped_where_the_class_lacks_it(run_python: Run, app: Path) -> None:
    sweep = [
        "optim@actor.optim=sgd,adam",
        "actor.optim.strict=false",
        "++actor.optim.override_optimizer_config.momentum=0.5",
    ]
    done = run_python("app.py", "-m", *sweep, "hydra.sweep.dir=jobs", cwd=app)
    assert done.returncode == 0, done.stderr
    built = [(app / "jobs" / job / "built.txt").read_text() for job in "01"]
    assert built == ["SGD [0.01, 0.5]", "Adam [0.001]"]
    assert done.stderr.count("Adam takes no momentum") == 1
