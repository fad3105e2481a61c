"""Real programs in subprocesses: one run, multirun, launchers, printing the config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

APP = """\
import json, os, sys, warnings
import {library} as library
import optim_hydra

@library.main(config_path="conf", config_name="config", version_base=None)
def run(cfg):
    from torch import nn
    optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), cfg.critic.optim)
    scheduler = optim_hydra.build_lr_scheduler(optimizer, cfg.critic.optim, 100)
    print("BUILT", json.dumps([
        type(optimizer).__name__, scheduler.base_lrs[0], scheduler.schedule.warmup,
        cfg.critic.optim.clip_grad,
    ]), os.getpid(), flush=True)
    return scheduler.base_lrs[0]

if __name__ == "__main__":
    run()
"""
PRIMARY = "defaults: [optim@actor.optim: adamw, optim@critic.optim: adamw, _self_]\n"
OLD_FILE = "defaults: [base_optim, _self_]\noptimizer: SGD\nwarmup_steps_ratio: 0.2\n"


@pytest.fixture
def app(tmp_path: Path, run_python):
    """Write a program with a config folder, and run it with overrides."""

    def run(*args: str, library: str = "optim_hydra", start=run_python, **env: str):
        files = {
            "app.py": APP.format(library=library),
            "conf/config.yaml": PRIMARY,
            "conf/optim/old.yaml": OLD_FILE,
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return start("app.py", *args, **env)

    return run


def built(result) -> list[str]:
    # Workers write at once, so two of them may share a line.
    return sorted(re.findall(r"BUILT \[[^\]]*\]", result.stdout))


def test_a_run_takes_old_keys_with_a_visible_warning(app, tmp_path: Path) -> None:
    result = app(
        "critic.optim.warmup_steps_ratio=0.1",
        "+critic.optim.grad_clip=0.5",
        "hydra.run.dir=out",
    )
    assert result.returncode == 0, result.stderr
    assert built(result) == ['BUILT ["AdamW", 0.001, 10, 0.5]']
    assert (
        result.stderr.count("FutureWarning") + result.stderr.count("RenamedKeyWarning")
        == 2
    )
    text = "critic.optim.warmup_steps_ratio is now lr_warmup_steps_ratio"
    assert result.stderr.count(text) == 1
    overrides = yaml.safe_load((tmp_path / "out/.hydra/overrides.yaml").read_text())
    assert overrides == [
        "critic.optim.lr_warmup_steps_ratio=0.1",
        "++critic.optim.clip_grad=0.5",
    ]
    config = yaml.safe_load((tmp_path / "out/.hydra/config.yaml").read_text())
    assert config["critic"]["optim"]["lr_warmup_steps_ratio"] == 0.1
    assert "warmup_steps_ratio" not in config["critic"]["optim"]


@pytest.mark.parametrize("library", ["optim_hydra", "hydra"])
def test_files_with_old_keys_work_under_either_main(app, library: str) -> None:
    result = app("optim@critic.optim=old", library=library)
    assert result.returncode == 0, result.stderr
    assert built(result) == ['BUILT ["SGD", 0.001, 20, null]']
    assert "conf/optim/old.yaml:3: RenamedKeyWarning: optim.warmup_steps_ratio is" in (
        result.stderr
    )


def test_an_added_old_key_is_renamed_at_the_build_under_stock_main(app) -> None:
    result = app("+critic.optim.warmup_steps_ratio=0.1", library="hydra")
    assert result.returncode == 0, result.stderr
    assert built(result) == ['BUILT ["AdamW", 0.001, 10, null]']
    assert "critic.optim.warmup_steps_ratio is now lr_warmup_steps_ratio" in (
        result.stderr
    )


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_a_sweep_over_old_keys(app, tmp_path: Path, launcher: str) -> None:
    result = app(
        "-m",
        f"hydra/launcher={launcher}",
        "critic.optim.warmup_steps_ratio=0.1,0.3",
        "optim@critic.optim=adamw,sgd",
        "hydra.sweep.dir=sweep",
    )
    assert result.returncode == 0, result.stderr
    assert built(result) == [
        'BUILT ["AdamW", 0.001, 10, null]',
        'BUILT ["AdamW", 0.001, 30, null]',
        'BUILT ["SGD", 0.01, 10, null]',
        'BUILT ["SGD", 0.01, 30, null]',
    ]
    for job in range(4):
        saved = (tmp_path / f"sweep/{job}/.hydra/overrides.yaml").read_text()
        assert "critic.optim.lr_warmup_steps_ratio=0." in saved


def test_a_sweep_warns_once_for_a_file_that_each_job_reads(app) -> None:
    result = app("-m", "optim@critic.optim=old", "critic.optim.lr=1e-3,2e-3,3e-3")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("RenamedKeyWarning") == 1


def test_printing_the_config_shows_new_keys_and_needs_no_torch(app, run_fresh) -> None:
    result = app(
        "--cfg",
        "job",
        "optim@critic.optim=old",
        "actor.optim.lr_scheduler=cosine",
        start=run_fresh,
        PYTHONPROFILEIMPORTTIME="1",
    )
    assert result.returncode == 0, result.stderr
    config = yaml.safe_load(result.stdout)
    assert config["critic"]["optim"]["lr_warmup_steps_ratio"] == 0.2
    assert config["actor"]["optim"]["lr_scheduler_type"] == "cosine"
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "optim_hydra.store" in imported
    assert "torch" not in imported


def test_all_problems_of_all_nodes_come_before_the_program_starts(app) -> None:
    result = app(
        "actor.optim.lr=-1", "+actor.optim.weight_deacy=0.1", "critic.optim.betas=[2,0]"
    )
    assert result.returncode == 1
    assert "BUILT" not in result.stdout
    assert (
        "3 problems:\n"
        "  - -1.0 is not a finite float >= 0 @ actor.optim.lr\n"
        "  - no field weight_deacy: did you mean weight_decay?"
        " @ actor.optim.weight_deacy\n"
        "  - 2.0 is not a float in [0, 1) @ critic.optim.betas[0]\n"
    ) in result.stderr


def test_an_orphan_is_warned_about(app) -> None:
    result = app("+critic.optm.lr=1e-2")
    assert result.returncode == 0, result.stderr
    assert "nobody reads critic.optm: did you mean optim?" in result.stderr


@pytest.mark.parametrize(
    "args", [("critic.optim=sgd",), ("-m", "critic.optim=sgd,adam")]
)
def test_text_for_a_node_is_refused_with_the_right_override(app, args) -> None:
    result = app(*args)
    assert result.returncode == 1
    assert "write optim@critic.optim=sgd @ critic.optim" in result.stderr


DECLARES = """\
import optim_hydra
from optim_hydra.declared import set_allowed_impls

@optim_hydra.register_schedule("halved")
def halved(step, *, total):
    return 1.0 if step < total / 2 else 0.5

import torch

class MySGD(torch.optim.SGD):
    pass

optim_hydra.register_optimizer("plain", MySGD)
set_allowed_impls("torch.optim")

@optim_hydra.main(config_path="conf", config_name="config")
def run(cfg):
    from torch import nn
    optimizer = optim_hydra.build_optimizer(nn.Linear(4, 2), cfg.critic.optim)
    scheduler = optim_hydra.build_lr_scheduler(optimizer, cfg.critic.optim, 10)
    print("BUILT", type(optimizer).__name__, scheduler.schedule.factor(7), flush=True)

if __name__ == "__main__":
    run()
"""


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_what_a_program_declares_holds_in_every_launcher(
    tmp_path: Path, run_python, launcher: str
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/config.yaml").write_text(PRIMARY)
    (tmp_path / "app.py").write_text(DECLARES)
    (tmp_path / "evil_impl.py").write_text("print('IMPORTED', flush=True)")
    sweep = ["app.py", "-m", f"hydra/launcher={launcher}", "critic.optim.lr=1e-3,1e-2"]
    named = ["critic.optim.lr_scheduler_type=halved", "critic.optim.optimizer=plain"]
    result = run_python(*sweep, *named)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("BUILT MySGD 0.5") == 2
    result = run_python(*sweep, "critic.optim.optimizer_impl=evil_impl")
    assert result.returncode == 1
    assert "IMPORTED" not in result.stdout
    assert "evil_impl is not among the modules this program allows" in result.stderr


def test_each_run_has_what_the_program_declares_at_that_time(
    tmp_path: Path, run_python
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/config.yaml").write_text(PRIMARY)
    (tmp_path / "app.py").write_text("""\
import optim_hydra
from optim_hydra.declared import DECLARED, set_allowed_impls

@optim_hydra.main(config_path="conf", config_name="config")
def run(cfg):
    print("ALLOWED", DECLARED.allowed_impls, flush=True)

for impls in (None, ["torch.optim"], None):
    set_allowed_impls(impls)
    run()
""")
    result = run_python("app.py")
    assert result.returncode == 0, result.stderr
    assert [x for x in result.stdout.splitlines() if x.startswith("ALLOWED")] == [
        "ALLOWED None",
        "ALLOWED frozenset({'torch.optim'})",
        "ALLOWED None",
    ]


def test_a_node_that_nobody_read_is_named_at_the_end(app, tmp_path: Path) -> None:
    result = app("+optim@reward.optim=sgd", "hydra.run.dir=out")
    assert result.returncode == 0, result.stderr
    log = (tmp_path / "out/app.log").read_text()
    assert log.count("no optimizer was built from") == 1
    assert "[WARNING] - no optimizer was built from reward.optim" in log
    for override in ("actor.optim.lr=1e-4", "optim@actor.optim=sgd"):
        result = app(override, "hydra.run.dir=out2")
        assert "no optimizer was built from actor.optim" in result.stdout
    assert "no optimizer" not in app("critic.optim.lr=1e-4").stdout


@pytest.mark.parametrize(
    "override",
    [
        "actor.optim.weight_decay=${.lr}",
        "actor.optim.lr=${...critic.optim.lr}",
        "+note=${oc.env:NOT_SET}",
        "+wandb.optim=tag",
    ],
)
def test_overrides_that_refer_to_other_values_are_left_to_hydra(app, override) -> None:
    result = app(override)
    assert result.returncode == 0, result.stderr


def test_a_dropped_value_is_in_the_log_of_each_job(app, tmp_path: Path) -> None:
    result = app(
        "-m",
        "critic.optim.optimizer=SGD",
        "critic.optim.betas=[0.8,0.9]",
        "critic.optim.strict=false",
        "critic.optim.lr=1e-3,1e-2",
        "hydra.sweep.dir=sweep",
    )
    assert result.returncode == 0, result.stderr
    for job in range(2):
        log = (tmp_path / f"sweep/{job}/app.log").read_text()
        assert "SGD takes no betas: dropped, since strict is false" in log


def test_an_error_of_the_job_is_its_message_without_a_stack(app) -> None:
    result = app("critic.optim.optimizer=Adamw")
    assert result.returncode == 1
    assert "did you mean AdamW, Adam, RAdam? @ critic.optim.optimizer" in result.stderr
    assert "Traceback" not in result.stderr
    result = app("critic.optim.optimizer=Adamw", HYDRA_FULL_ERROR="1")
    assert "Traceback" in result.stderr


def test_old_and_new_on_one_command_line_are_refused(app) -> None:
    result = app("critic.optim.grad_clip=1", "critic.optim.clip_grad=2")
    assert result.returncode == 1
    assert (
        "critic.optim.grad_clip=1 and critic.optim.clip_grad=2 are one key with two"
        " values: keep one of them @ critic.optim.grad_clip"
    ) in result.stderr
    assert "Traceback" not in result.stderr
