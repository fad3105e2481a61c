"""`optim-hydra check` tells what keys of other libraries are here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *args: CliRunner().invoke(app, ["check", *args])


def test_a_node_of_another_library_is_told_key_by_key(
    check: Check, tmp_path: Path
) -> None:
    (tmp_path / "theirs.yaml").write_text(
        "actor:\n"
        "  optim:\n"
        "    _target_: verl.workers.config.FSDPOptimizerConfig\n"
        "    optimizer: adamw\n"
        "    lr: 2e-6\n"
        "    min_lr: 1e-6\n"
        "    warmup_style: null\n"
        "    max_norm: 1.0\n"
        "    offload: true\n"
    )
    result = check("theirs.yaml")
    assert result.exit_code == 0
    *lines, refused = result.output.splitlines()
    assert lines == [
        "actor.optim: a verl.workers.config.FSDPOptimizerConfig, which others build;"
        " of its keys",
        "  these are ours too: optimizer, lr",
        "  min_lr is a key of Megatron: write min_lr_ratio, a share of lr (0.5 here),"
        " where min_lr is an absolute rate",
        "  warmup_style is our lr_scheduler_type",
        "  max_norm is not known: write clip_grad",
        "  offload is not known: an argument of the class goes into"
        " override_optimizer_config",
    ]
    assert refused.startswith("  as a node of ours it would be refused: ")
    assert refused.endswith("did you mean AdamW, Adam, RAdam? @ actor.optim.optimizer")


def test_keys_of_verl_mean_what_migrate_makes_of_them(
    check: Check, tmp_path: Path
) -> None:
    (tmp_path / "theirs.yaml").write_text(
        "optim:\n"
        "  _target_: verl.workers.config.McoreOptimizerConfig\n"
        "  optimizer: adam\n"
        "  lr: 1e-5\n"
        "  min_lr: 1e-6\n"
        "  lr_decay_style: cosine\n"
        "  lr_warmup_iters: 10\n"
        "  main_grads_dtype: fp32\n"
        "  betas: [0.9, 0.95]\n"
    )
    result = check("theirs.yaml")
    assert result.output.splitlines() == [
        "optim: a verl.workers.config.McoreOptimizerConfig, which others build; of its"
        " keys",
        "  these are ours too: lr",
        "  optimizer: adam is our optimizer: AdamW",
        "  min_lr: 1e-06 is our min_lr_ratio: 0.1",
        "  lr_decay_style: cosine is our lr_scheduler_type: cosine",
        "  lr_warmup_iters is our lr_warmup_steps",
        "  main_grads_dtype: fp32 changes nothing: remove it",
        "  betas: verl gives Megatron no betas, so it had [0.9, 0.999]: write these or,"
        " to have [0.9, 0.95], adam_beta1 and adam_beta2 in override_optimizer_config",
    ]


NODE = (
    "actor:\n"
    "  optim:\n"
    "    _target_: verl.workers.config.McoreOptimizerConfig\n"
    "    lr: 1e-5\n"
    "    min_lr: 0.0\n"
    "    lr_decay_style: constant\n"
    "    clip_grad: 1.0\n"
)


def test_keys_of_verl_are_told_on_the_command_line_as_in_a_file(
    check: Check, tmp_path: Path
) -> None:
    typed = {"min_lr": "1e-06", "lr_decay_style": "cosine"}
    (tmp_path / "typed.yaml").write_text(NODE)
    text = NODE.replace("0.0", typed["min_lr"]).replace("constant", "cosine")
    (tmp_path / "written.yaml").write_text(text)
    words = [f"actor.optim.{key}={value}" for key, value in typed.items()]
    result = check("typed.yaml", "+actor.optim.grad_clip=0.5", *words)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "actor.optim: a verl.workers.config.McoreOptimizerConfig, which others build;"
        " of its keys",
        "  these are ours too: lr, clip_grad",
        "  min_lr: 1e-06 is our min_lr_ratio: 0.1",
        "  lr_decay_style: cosine is our lr_scheduler_type: cosine",
        "warning: actor.optim.grad_clip is now clip_grad (since 0.1.0; the old key is"
        " removed in 1.0.0)",
    ]
    assert check("written.yaml").output == check("typed.yaml", *words).output


def test_a_node_of_ours_refuses_them_on_the_command_line(
    check: Check, tmp_path: Path
) -> None:
    (tmp_path / "ours.yaml").write_text(
        NODE + "critic:\n  optim: {_target_: optim_hydra.build, lr: 1e-5}\n"
    )
    result = check("ours.yaml", "+critic.optim.min_lr=1e-6", "actor.optim.min_lr=1e-6")
    assert str(result.exception) == (
        "min_lr is a key of Megatron: write min_lr_ratio, a share of lr, where min_lr"
        " is an absolute rate @ critic.optim.min_lr"
    )
