"""An OptimConfig goes to plain data, YAML, JSON, a dataclass, and comes back equal."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from optim_hydra import OptimConfig, ParamGroupConfig, convert_config
from optim_hydra.errors import ConfigError, RenamedKeyWarning, UnknownKeyError
from optim_hydra.renamed_keys import RENAMED_KEYS

ratio = st.floats(0.0, 1.0)
beta = st.floats(0.0, 1.0, exclude_max=True)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | ratio
    | st.text("ab é:#'", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("ab", min_size=1), inner, max_size=2)
    ),
    max_leaves=4,
)
rules = st.lists(
    st.fixed_dictionaries(
        {"pattern": st.sampled_from(["*.bias", "blocks.*"])},
        optional={"lr_mult": ratio, "weight_decay": ratio, "expect": st.just(0)},
    ),
    max_size=2,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "optimizer": st.sampled_from(["AdamW", "SGD", "_AdamW"]),
    "optimizer_impl": st.sampled_from(["torch.optim", "torchao.optim"]),
    "override_optimizer_config": st.dictionaries(
        st.sampled_from(["momentum", "k"]), plain, max_size=2
    ),
    "lr": st.floats(0.0, 10.0) | st.just("???") | st.just("${lr}"),
    "weight_decay": ratio,
    "betas": st.tuples(beta, beta),
    "eps": st.none() | ratio,
    "clip_grad": st.none() | st.floats(1e-6, 10.0),
    "implementation": st.sampled_from([None, "foreach", "fused"]),
    "lr_warmup_steps": st.none() | st.integers(-1, 100),
    "lr_warmup_steps_ratio": ratio,
    "lr_warmup_init_ratio": ratio,
    "total_training_steps": st.just(-1) | st.integers(1, 1000),
    "zero_indexed_step": st.booleans(),
    "param_groups": rules,
    "no_decay": st.lists(st.sampled_from(["bias", "norm"]), max_size=2, unique=True),
    "layer_decay": st.none()
    | st.fixed_dictionaries(
        {"factor": st.floats(0.1, 1.0)}, optional={"layers": st.just(["a.*", "b.*"])}
    ),
    "on_resume": st.sampled_from(["config", "checkpoint", "strict"]),
    "strict": st.booleans(),
}
SCHEDULES: list[dict[str, Any]] = [
    {},
    {"lr_scheduler_type": "linear", "min_lr_ratio": 0.1},
    {"lr_scheduler_type": "cosine", "num_cycles": 1.5},
    {"lr_scheduler_type": "wsd", "lr_decay_steps_ratio": 0.2, "lr_decay_style": "sqrt"},
]
STEPS: list[dict[str, Any]] = [
    {},
    {"compile_step": True},
    {"step_in_backward": True, "clip_grad": None},
]
configs = st.builds(
    lambda fields, schedule, step: OptimConfig(**{**fields, **schedule, **step}),
    st.fixed_dictionaries({}, optional=FIELDS),
    st.sampled_from(SCHEDULES),
    st.sampled_from(STEPS),
)
WAYS: dict[str, Callable[[OptimConfig], Any]] = {
    "dict": OptimConfig.to_dict,
    "json": lambda config: json.loads(json.dumps(config.to_dict())),
    "yaml": lambda config: yaml.safe_load(yaml.safe_dump(config.to_dict())),
    "hydra's yaml": lambda config: (
        OmegaConf.create({"lr": 1e-3, "optim": config.to_dict()}).optim
    ),
    "dataclass": lambda config: config,
    "copy": dataclasses.replace,
    "structured": OmegaConf.structured,
}


@pytest.mark.parametrize("way", WAYS)
@given(config=configs)
@settings(deadline=None)
def test_it_comes_back_equal(way: str, config: OptimConfig) -> None:
    if config.lr == "${lr}" and way in ("hydra's yaml", "structured"):
        config.lr = 1e-3  # a tree resolves its references
    assert convert_config(WAYS[way](config)) == config


@given(config=configs)
@settings(deadline=None)
def test_plain_data_is_plain(config: OptimConfig) -> None:
    def kinds(value: Any) -> set[type]:
        held = value.values() if isinstance(value, dict) else value
        inner = map(kinds, held) if isinstance(value, (dict, list)) else []
        return {type(value)}.union(*inner)

    accepted = {dict, list, str, int, float, bool, type(None)}
    assert kinds(config.to_dict()) <= accepted


def test_a_stored_config_of_an_older_version_loads() -> None:
    stored = json.dumps(
        {
            "warmup_steps_ratio": 0.1,
            "lr_scheduler": "cosine",
            "grad_clip": 0.5,
            "lr": 1e-4,
        }
    )
    with pytest.warns(FutureWarning) as caught:
        config = convert_config(json.loads(stored))
    assert config == OptimConfig(
        lr=1e-4, lr_scheduler_type="cosine", clip_grad=0.5, lr_warmup_steps_ratio=0.1
    )
    assert [str(w.message).partition(" is now ")[0] for w in caught] == [
        "warmup_steps_ratio",
        "lr_scheduler",
        "grad_clip",
    ]


@given(
    values=st.fixed_dictionaries(
        {},
        optional={
            "warmup_steps_ratio": ratio,
            "grad_clip": st.floats(0.1, 9.0),
            "warmup_style": st.sampled_from(["cosine", "constant", None]),
        },
    )
)
@settings(deadline=None)
def test_every_older_key_loads_as_the_new_one(values: dict[str, Any]) -> None:
    new = {RENAMED_KEYS[key].new: v for key, v in values.items() if v is not None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert convert_config(values) == OptimConfig(**new)
    assert all(warning.category is RenamedKeyWarning for warning in caught)
    assert len(caught) == len(new)


def test_rules_come_back() -> None:
    config = OptimConfig(param_groups=[ParamGroupConfig(role="bias", lr_mult=0.5)])
    assert config.to_dict()["param_groups"] == [{"role": ["bias"], "lr_mult": 0.5}]
    assert convert_config(config.to_dict()) == config


def test_a_config_of_a_later_version_is_refused_by_name() -> None:
    stored = {**OptimConfig().to_dict(), "ema_decay": 0.999}
    with pytest.raises(UnknownKeyError) as caught:
        convert_config(stored)
    assert str(caught.value).endswith("@ ema_decay")


def test_wrong_values_are_told_at_once_with_their_place() -> None:
    tree = OmegaConf.create(
        {"actor": {"optim": {"lr": -1, "lr_scheduler_type": "cos"}}}
    )
    with pytest.raises(ConfigError) as caught:
        convert_config(tree.actor.optim)
    assert [problem.key for problem in caught.value.problems] == [
        "actor.optim.lr",
        "actor.optim.lr_scheduler_type",
    ]
