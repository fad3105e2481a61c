"""Several patterns that match one parameter, as public bug reports met them.

Cases: B43.
"""

from __future__ import annotations

from typing import Any

import pytest

from case_helpers import Compose, names_by, refused, values_of
from optim_hydra import ParamGroupConfig, build_optimizer, build_optimizers
from wrapped_models import WRAPPERS, three_layers

OVERLAP = """\
actor:
  optim:
    lr: 1e-3
    weight_decay: 0.1
    param_groups:
      - {pattern: '0.bias', lr: 4e-4}
      - {pattern: '0.*', lr: 2e-4, weight_decay: 0.0}
"""


def test_B43_the_first_match_wins(compose: Compose) -> None:
    optimizer = build_optimizer(three_layers(), compose(yaml=OVERLAP).actor.optim)
    assert names_by(optimizer, "lr", "weight_decay") == {
        (1e-3, 0.1): ["1.weight", "1.bias", "2.weight", "2.bias"],
        (4e-4, 0.1): ["0.bias"],
        (2e-4, 0.0): ["0.weight"],
    }


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_B43_kin_wrapped_models(wrap: Any, one_process: None, compose: Compose) -> None:
    optim = compose(yaml=OVERLAP).actor.optim
    found = values_of(build_optimizer(wrap(three_layers()), optim), "lr")
    assert [found[f"{name}"] for name in ("0.weight", "0.bias")] == [2e-4, 4e-4]


@pytest.mark.parametrize(
    "rules",
    [
        [{"regex": r"^0\.bias$", "lr": 4e-4}, {"module_type": "Linear", "lr": 2e-4}],
        [{"role": "bias", "lr": 4e-4}, {"pattern": "[02].weight", "lr": 2e-4}],
        [{"ndim": 1, "lr": 4e-4}, {"min_ndim": 1, "lr": 2e-4}],
        [
            ParamGroupConfig(pattern="*.bias", lr=4e-4),
            ParamGroupConfig(pattern="*", lr=2e-4),
        ],
    ],
    ids=["regex", "role", "ndim", "typed"],
)
def test_B43_kin_other_matchers(rules: list[Any]) -> None:
    optimizer = build_optimizer(three_layers(), {"param_groups": rules})
    found = values_of(optimizer, "lr")
    assert [found[name] for name in ("0.weight", "0.bias")] == [2e-4, 4e-4]
    assert len(found) == 6


def test_B43_kin_a_rule_inherits_what_it_does_not_say() -> None:
    config = {
        "betas": [0.8, 0.9],
        "eps": 1e-6,
        "override_optimizer_config": {"amsgrad": True},
        "param_groups": [{"pattern": "0.*", "eps": 1e-5}, {"ndim": 1, "betas": [0, 0]}],
    }
    optimizer = build_optimizer(three_layers(), config)
    keys = ("betas", "eps", "amsgrad")
    assert names_by(optimizer, *keys) == {
        ((0.8, 0.9), 1e-6, True): ["2.weight"],
        ((0.8, 0.9), 1e-5, True): ["0.weight", "0.bias"],
        ((0.0, 0.0), 1e-6, True): ["1.weight", "1.bias", "2.bias"],
    }


def test_B43_kin_each_part_has_rules_of_its_own(compose: Compose) -> None:
    config = compose("critic.optim.param_groups=[{pattern: '0.*', lr: 0.5}]")
    models = {"actor": three_layers(), "critic": three_layers()}
    container = build_optimizers(models, config)
    assert set(values_of(container["actor"], "lr").values()) == {1e-3}
    assert values_of(container["critic"], "lr")["0.weight"] == 0.5


def test_B43_kin_a_rule_that_others_leave_nothing_is_refused(compose: Compose) -> None:
    rules = "[{pattern: '*.bias', lr: 0.1}, {pattern: '0.bias', lr: 0.2}]"
    config = compose(f"actor.optim.param_groups={rules}")
    assert str(refused(three_layers(), config.actor.optim)) == (
        "all of the parameters that it matches (0.bias) fall under param_groups[0]"
        " already: move"
        " this rule up @ actor.optim.param_groups[1]"
    )


def test_B43_kin_contradictions_are_refused_with_their_full_key(
    compose: Compose,
) -> None:
    config = compose("actor.optim.param_groups.0.lr_mult=0.5", yaml=OVERLAP)
    assert str(refused(three_layers(), config.actor.optim)) == (
        "lr and lr_mult exclude each other: keep one (null takes the other away)"
        " @ actor.optim.param_groups[0].lr_mult"
    )
