"""Patterns that match nothing, as public bug reports met them.

Cases: B41.
"""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from case_helpers import Compose, names_by, refused, values_of
from optim_hydra import ConfigError, build_optimizer, build_optimizers
from optim_hydra.errors import OptimHydraWarning
from wrapped_models import WRAPPERS, parametrized, three_layers

TYPO = """\
actor:
  optim:
    param_groups:
      - {pattern: 'embeding*', weight_decay: 0.0}
"""
NAMES = [name for name, _ in three_layers().named_parameters()]


def missed(model: nn.Module, **matchers: Any) -> str:
    rule = {**matchers, "lr_mult": 0.5}
    return str(refused(model, {"param_groups": [rule]}))


def test_B41_a_pattern_that_matches_nothing_is_refused(compose: Compose) -> None:
    assert str(refused(three_layers(), compose(yaml=TYPO).actor.optim)) == (
        "pattern 'embeding*' matches no parameter (names here are 0.weight, 0.bias,"
        " 1.weight and 3 more) @ actor.optim.param_groups[0]"
    )


def test_B41_strict_false_warns(compose: Compose) -> None:
    config = compose("actor.optim.strict=false", yaml=TYPO)
    with pytest.warns(OptimHydraWarning, match="embeding") as caught:
        optimizer = build_optimizer(three_layers(), config.actor.optim)
    assert len(caught) == 1
    assert str(caught[0].message).endswith("@ actor.optim.param_groups[0]")
    assert names_by(optimizer, "lr") == {1e-3: NAMES}


def test_B41_a_pattern_that_matches_frozen_parameters_only_warns(
    compose: Compose,
) -> None:
    model = three_layers()
    model[0].requires_grad_(False)
    config = compose("actor.optim.param_groups=[{pattern: '0.*', lr: 0.5}]")
    with pytest.warns(OptimHydraWarning) as caught:
        optimizer = build_optimizer(model, config.actor.optim)
    assert [str(warning.message) for warning in caught] == [
        "the rule matches frozen parameters only (0.weight, 0.bias)"
        " @ actor.optim.param_groups[0]"
    ]
    assert names_by(optimizer, "lr") == {1e-3: NAMES[2:]}


@pytest.mark.parametrize(
    ("matchers", "text"),
    [
        ({"pattern": "1.wieght"}, "pattern '1.wieght' matches no parameter"),
        ({"regex": r"^1\.wieght"}, r"regex '^1\\.wieght' matches no parameter"),
        ({"module_type": "LayerNrom"}, "did you mean LayerNorm?"),
        ({"role": "embedding"}, "(roles here are 1d, bias, head, hidden, norm)"),
        ({"ndim": 3}, "ndim 3 matches no parameter"),
        ({"pattern": "*", "expect": 7}, "pattern '*' matches 6 parameters (expect: 7)"),
    ],
    ids=str,
)
def test_B41_kin_other_matchers(matchers: dict[str, Any], text: str) -> None:
    told = missed(three_layers(), **matchers)
    assert text in told
    assert told.endswith("@ param_groups[0]")


@pytest.mark.parametrize(
    "pattern",
    ["1.wieght", "weight", "0", "layers.0.*", "*.0.*", "O.*", "Actor.0.weight"],
)
def test_B41_kin_at_least_one_real_name_is_told(pattern: str) -> None:
    told = missed(three_layers(), pattern=pattern)
    assert any(name in told.removeprefix(f"pattern {pattern!r}") for name in NAMES)
    assert f"did you mean {pattern}?" not in told


@pytest.mark.parametrize(
    ("wrap", "pattern"),
    [
        ("distributed", "module.0.*"),
        ("compiled", "_orig_mod.0.*"),
        ("checkpointed_child", "0._checkpoint_wrapped_module.*"),
    ],
)
def test_B41_kin_names_have_no_segments_of_wrappers(
    wrap: str, pattern: str, one_process: None
) -> None:
    model = WRAPPERS[wrap](three_layers())
    assert "(names here are 0.weight, 0.bias" in missed(model, pattern=pattern)
    rule = {"pattern": "0.*", "lr_mult": 0.5, "expect": 2}
    optimizer = build_optimizer(model, {"param_groups": [rule]})
    assert names_by(optimizer, "lr")[5e-4] == ["0.weight", "0.bias"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("a[0]", "a[[]0].*"),
        ("a*b", "a[*]b.*"),
        ("what?", "what[?].*"),
        ("two words", "two words.*"),
        ("größe", "größe.*"),
        ("_module", "_module.*"),
    ],
)
def test_B41_kin_odd_names_are_found(name: str, pattern: str) -> None:
    model = nn.ModuleDict({name: nn.Linear(2, 2), "a0": nn.Linear(2, 2)})
    rule = {"pattern": pattern, "lr_mult": 0.5, "expect": 2}
    optimizer = build_optimizer(model, {"param_groups": [rule]})
    assert names_by(optimizer, "lr")[5e-4] == [f"{name}.weight", f"{name}.bias"]


def test_B41_kin_brackets_are_a_set_of_characters_and_the_error_helps() -> None:
    told = missed(nn.ModuleDict({"a[0]": nn.Linear(2, 2)}), pattern="a[0].*")
    assert "a[0].weight" in told
    assert "did you mean a[0]?" not in told


@pytest.mark.parametrize(
    ("index", "matchers"),
    [
        (0, {"module_type": "Linear", "pattern": "0.*", "ndim": 2}),
        (0, {"role": "hidden"}),
        (1, {"role": "head", "ndim": 2}),
    ],
    ids=["type", "hidden", "head"],
)
def test_B41_kin_a_parametrized_layer_is_what_it_was(
    index: int, matchers: dict[str, Any]
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    parametrized(model[index], "weight")
    rule = {**matchers, "lr_mult": 0.5}
    optimizer = build_optimizer(model, {"param_groups": [rule]})
    name = f"{index}.parametrizations.weight.original"
    assert names_by(optimizer, "lr")[5e-4] == [name]


def test_B41_kin_all_rules_of_all_parts_come_in_one_error(compose: Compose) -> None:
    models = {"actor": three_layers(), "critic": three_layers()}
    config = compose(
        "actor.optim.param_groups=[{pattern: a, lr: 1}, {regex: '^b', lr: 1}]",
        "critic.optim.param_groups=[{module_type: Conv2d, freeze: true}]",
    )
    with pytest.raises(ConfigError) as caught:
        build_optimizers(models, config)
    assert [problem.key for problem in caught.value.problems] == [
        "actor.optim.param_groups[0]",
        "actor.optim.param_groups[1]",
        "critic.optim.param_groups[0]",
    ]


@pytest.mark.parametrize("value", ["0", "[0.*]", "1.5", "true"])
def test_B41_kin_a_pattern_that_is_no_text_is_told_at_its_key(
    value: str, compose: Compose
) -> None:
    config = compose(f"actor.optim.param_groups.0.pattern={value}", yaml=TYPO)
    told = str(refused(three_layers(), config.actor.optim))
    assert "is not a name: write one such as blocks.*" in told
    assert told.endswith("@ actor.optim.param_groups[0].pattern")


def test_B41_kin_a_stage_may_lack_a_match_where_the_whole_model_has_one() -> None:
    stage = nn.ModuleDict({"2": three_layers()[2]})
    rule = {"pattern": "0.*", "lr_mult": 0.5}
    assert "matches no parameter" in missed(stage, pattern="0.*")
    config = {"param_groups": [rule]}
    found = values_of(build_optimizer(stage, config, whole=three_layers()), "lr")
    assert found == {"2.weight": 1e-3, "2.bias": 1e-3}
    with pytest.raises(ConfigError) as caught:
        build_optimizer(stage, config, whole=stage)
    assert str(caught.value).endswith("@ param_groups[0]")
