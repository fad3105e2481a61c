"""A law of an app's file and its script: converted, they compose to what they had."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import Any

import hydra
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import (
    OptimConfig,
    build_lr_scheduler,
    build_optimizer,
    compose,
    convert_config,
)
from optim_hydra.errors import ConfigError
from optim_hydra.migrating.paths import migrate_paths

BETAS = [[0.9, 0.999], [0.9, 0.95]]
COMMON: dict[str, list[Any]] = {
    "lr": [1e-3, 1e-4],
    "lr_warmup_steps_ratio": [0.0, 0.1],
    "total_training_steps": [-1, 200],
    "weight_decay": [0.01, 0.1],
    "lr_warmup_steps": [-1, 0, 25],  # no share of 200 below
    "betas": BETAS,
    "clip_grad": [1.0, 0.5],
}
GROUPS: dict[str, tuple[str, dict[str, list[Any]]]] = {
    "fsdp": (
        "FSDPOptimizerConfig",
        {
            "optimizer": ["AdamW", "SGD", "RMSprop", "Adafactor"],
            "optimizer_impl": ["torch.optim"],
            "min_lr_ratio": [0.0, 0.1],
            "warmup_style": [None, "cosine", "constant"],
            "lr_scheduler_type": ["constant", "cosine"],
            "num_cycles": [0.5],
            "zero_indexed_step": [True, False],
            "override_optimizer_config": [None, {}],
        },
    ),
    "megatron": (
        "McoreOptimizerConfig",
        {
            "optimizer": ["adam", "sgd"],
            "lr_warmup_init": [0.0, 1e-5],
            "lr_decay_steps": [None, 100],
            "lr_decay_style": ["constant", "linear", "cosine", "WSD"],
            "min_lr": [0.0, 1e-5],
            "weight_decay_incr_style": ["constant", "linear"],
            "lr_wsd_decay_style": ["exponential", "cosine"],
            "lr_wsd_decay_steps": [None, 10],
            "use_checkpoint_opt_param_scheduler": [False, True],
            "muon_momentum": [0.95],
            "override_optimizer_config": [{}],
        },
    ),
    "veomni": (
        "VeOmniOptimizerConfig",
        {
            "optimizer": ["adamw"],
            "lr_min": [0.0, 1e-5],
            "lr_start": [0.0, 1e-5],
            "lr_decay_ratio": [1.0],
            "lr_scheduler_type": ["constant", "cosine"],
            "override_optimizer_config": [{}],
        },
    ),
    "torchtitan": (
        "TorchtitanOptimizerConfig",
        {
            "name": ["AdamW"],
            "eps": [1e-8, 1e-6],
            "decay_type": ["linear", "cosine", "sqrt"],
            "min_lr_factor": [0.0, 0.1],
        },
    ),
    "automodel": (
        "AutomodelOptimizerConfig",
        {
            "optimizer": ["AdamW"],
            "optimizer_impl": ["torch.optim"],
            "init_lr_ratio": [None, 0.1],
            "min_lr_ratio": [0.0, 0.01],
            "lr_scheduler_type": ["constant", "cosine", "linear"],
            "wd_incr_style": ["constant"],
            "num_cycles": [0.5, 1.0],
            "zero_indexed_step": [True],
            "eps": [1e-8],
            "master_weights": [False, True],
            "override_optimizer_config": [{}],
        },
    ),
}


def meant(config: OptimConfig) -> dict[str, Any]:
    """Return the fields with equal ways to say one thing made one."""
    items = config.to_dict()
    items["min_lr_ratio"] = items.get("min_lr_ratio") or 0.0
    for key in ("lr_warmup_steps", "total_training_steps"):
        items[key] = -1 if items.get(key) is None else items.get(key, -1)
    return items


def text_of(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value).replace(" ", "")


def write(
    folder: Path,
    node: dict[str, Any],
    typed: dict[str, Any],
    part: dict[str, Any] | None = None,
) -> list[Path]:
    """Write a node, or a group with a part laid over it, and a script for them."""
    words = [f"actor.optim.{key}={text_of(value)}" for key, value in typed.items()]
    conf, script = folder / "conf/config.yaml", folder / "run.sh"
    group = conf.parent / "optim/mine.yaml"
    group.parent.mkdir(parents=True, exist_ok=True)
    text = OmegaConf.to_yaml({"actor": {"optim": node if part is None else part}})
    if part is not None:
        group.write_text(OmegaConf.to_yaml(node))
        text = f"defaults: [optim@actor.optim: mine, _self_]\n{text}"
    conf.write_text(text)
    script.write_text(f"python train.py {shlex.join(words)}\n")
    return [conf, script]


def composed(conf: Path, script: Path) -> OptimConfig:
    found = shlex.split(script.read_text())[2:]
    with (
        warnings.catch_warnings(),
        hydra.initialize_config_dir(str(conf.parent), version_base=None),
    ):
        warnings.simplefilter("error", FutureWarning)
        return convert_config(compose("config", found).actor.optim)


def asks(*runs: list[Path]) -> bool:
    found = [report for run in runs for report in migrate_paths(run, source="verl")]
    return any(report.questions for report in found)


@st.composite
def nodes(draw: Any, pool: dict[str, list[Any]]) -> dict[str, Any]:
    """Make a file's node: all keys of its group, most of them at their defaults."""
    changed = draw(st.lists(st.sampled_from(sorted(pool)), max_size=5, unique=True))
    return {
        key: draw(st.sampled_from(values)) if key in changed else values[0]
        for key, values in pool.items()
    }


@st.composite
def overrides(draw: Any, pool: dict[str, list[Any]]) -> dict[str, Any]:
    keys = sorted(pool.keys() - {"override_optimizer_config"})
    typed = draw(st.lists(st.sampled_from(keys), max_size=4, unique=True))
    return {key: draw(st.sampled_from(pool[key])) for key in typed}


@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
@pytest.mark.parametrize("name", GROUPS)
@given(data=st.data())
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_file_and_its_script_compose_to_the_same(
    name: str, together: bool, data: Any, tmp_path: Path
) -> None:
    cls, own = GROUPS[name]
    node = data.draw(nodes({**COMMON, **own}))
    typed = data.draw(overrides({**COMMON, **own}))
    node = {"_target_": f"verl.workers.config.{cls}", **node}
    try:
        expected = convert_config({**node, **typed})
    except ConfigError:
        return
    if asks(write(tmp_path / "both", node, typed)):
        return
    conf, script = write(tmp_path / str(together), node, typed)
    if together:
        assert not asks([conf, script])
    elif asks([script], [conf]):
        return
    assert meant(composed(conf, script)) == meant(expected)


@pytest.mark.parametrize("name", GROUPS)
@given(data=st.data())
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_group_its_place_and_a_script_come_to_the_same_or_are_refused(
    name: str, data: Any, tmp_path: Path, module: nn.Module
) -> None:
    cls, own = GROUPS[name]
    pool = {**COMMON, **own}
    node = {"_target_": f"verl.workers.config.{cls}", **data.draw(nodes(pool))}
    part, typed = data.draw(overrides(pool)), data.draw(overrides(pool))
    try:
        expected = convert_config({**node, **part, **typed})
    except ConfigError:
        return
    conf, script = write(tmp_path, node, typed, part)
    if asks([conf.parent, script]):
        return
    try:
        found = composed(conf, script)
        if meant(found) != meant(expected):
            build_lr_scheduler(build_optimizer(module, found), found, 200)
    except ConfigError:
        return  # two values that can't be meant, which it says by name
    assert meant(found) == meant(expected)
