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
    return lambda config: CliRunner().invoke(app, ["check", config])


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
