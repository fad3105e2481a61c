"""Removed keys and keys of other libraries, as public bug reports met them.

Cases: B103, B107.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from omegaconf import OmegaConf
from torch import nn

import optim_hydra
from case_helpers import OLD, Compose, yaml_of
from optim_hydra import (
    ConfigError,
    build_optimizer,
    migrate,
    migrate_overrides,
)
from optim_hydra.renamed_keys import RENAMED_KEYS


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this version be the one that no longer reads the old key."""
    old = RENAMED_KEYS["warmup_steps_ratio"]
    gone = replace(old, removed_in=optim_hydra.__version__)
    monkeypatch.setitem(RENAMED_KEYS, old.old, gone)


@pytest.mark.usefixtures("removed")
def test_B103_after_the_removal(compose: Compose, module: nn.Module) -> None:
    yaml = yaml_of("warmup_steps_ratio: 0.1")
    untyped = OmegaConf.create(yaml)
    said = f"warmup_steps_ratio was removed in {optim_hydra.__version__}"
    for action in (
        lambda: compose(yaml=yaml),
        lambda: compose(f"{OLD}=0.1"),
        lambda: compose(f"+{OLD}=0.1"),
        lambda: compose("+actor.optim={warmup_steps_ratio:0.1}"),
        lambda: migrate(untyped),
        lambda: build_optimizer(module, untyped.actor.optim),
    ):
        with pytest.raises(ConfigError) as caught:
            action()
        text = str(caught.value)
        assert text.startswith(f"{said}: write lr_warmup_steps_ratio")
        assert text.endswith(f"@ {OLD}")
        assert "did you mean" not in text


@pytest.mark.usefixtures("removed")
def test_B103_kin_other_old_keys_still_work() -> None:
    with pytest.warns(FutureWarning):
        found = migrate_overrides(["critic.optim.warmup_style=cosine"])
    assert found == ["critic.optim.lr_scheduler_type=cosine"]
    with pytest.raises(ConfigError, match="was removed in"):
        migrate_overrides(["reward.optim.warmup_steps_ratio=0.1,0.2"])


MIN_LR = "lr_scheduler_type: cosine, total_training_steps: 100, min_lr"


@pytest.mark.parametrize(
    ("yaml", "overrides", "share"),
    [
        (f"lr: 1e-3, {MIN_LR}: 1e-5", [], "0.01"),
        (f"lr: 2e-3, {MIN_LR}: '1e-3'", [], "0.5"),
        ("lr: 1e-3", ["+actor.optim.lr=1e-3", "+actor.optim.min_lr=1e-5"], "0.01"),
    ],
)
def test_B107_rename_with_another_meaning(
    compose: Compose, yaml: str, overrides: list[str], share: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        compose(*overrides, yaml=yaml_of(yaml))
    assert f"write min_lr_ratio, a share of lr ({share} here)" in str(caught.value)
    assert str(caught.value).endswith("@ actor.optim.min_lr")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr: 1e-3, lr_start: 1e-5", "lr_warmup_init_ratio, a share of lr (0.01 here)"),
        ("lr_decay_steps: 100", "write total_training_steps"),
        ("adam_beta1: 0.9", "write betas: [beta1, beta2]"),
    ],
)
@pytest.mark.parametrize("how", ["file", "node"])
def test_B107_kin_keys_of_other_libraries(
    compose: Compose, how: str, text: str, said: str
) -> None:
    yaml = yaml_of(text)
    actions = {
        "file": lambda: compose(yaml=yaml),
        "node": lambda: migrate(OmegaConf.create(yaml)),
    }
    with pytest.raises(ConfigError) as caught:
        actions[how]()
    assert said in str(caught.value)
    key = text.rpartition(", ")[2].partition(":")[0]
    assert str(caught.value).endswith(f"@ actor.optim.{key}")


def test_B107_kin_lr_from_the_group(compose: Compose) -> None:
    for action in (
        lambda: compose("+actor.optim.min_lr=1e-5"),
        lambda: compose(yaml=yaml_of("min_lr: 1e-5")),
    ):
        with pytest.raises(ConfigError) as caught:
            action()
        assert "write min_lr_ratio, a share of lr, where" in str(caught.value)
