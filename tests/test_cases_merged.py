"""Parameters with equal options in one group, as public bug reports met them.

Cases: B119.
"""

from __future__ import annotations

import sys
from typing import Any

from torch import nn

from case_helpers import Compose, names_by
from optim_hydra import build_optimizer

MANY = """\
actor:
  optim:
    weight_decay: 0.1
    no_decay: [bias, norm]
    param_groups:
      - {pattern: '*.0.*', lr_mult: 0.1}
"""


def many_layers(num: int) -> nn.ModuleDict:
    return nn.ModuleDict(
        {f"l{i}": nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)) for i in range(num)}
    )


def test_B119_parameters_with_equal_options_share_a_group(compose: Compose) -> None:
    optimizer = build_optimizer(many_layers(100), compose(yaml=MANY).actor.optim)
    names = names_by(optimizer, "lr", "weight_decay")
    assert {key: len(value) for key, value in names.items()} == {
        (1e-4, 0.1): 100,
        (1e-4, 0.0): 100,
        (1e-3, 0.0): 200,
    }
    assert len(optimizer.param_groups) == 3


def num_calls(num_layers: int, num_rules: int) -> int:
    """Count the calls of functions, in Python and in C, that one build makes."""
    model = many_layers(num_layers)
    rules = [{"pattern": f"l{i}.0.*", "lr_mult": 0.1} for i in range(num_rules)]
    config = {"no_decay": ["bias", "norm"], "param_groups": rules}
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        build_optimizer(model, config)
    finally:
        sys.setprofile(before)
    return calls


def test_B119_building_is_linear_in_tensors_and_rules() -> None:
    num_calls(10, 1)  # imports and caches
    few, many = num_calls(100, 10), num_calls(1000, 10)
    assert many < 11 * few
    assert num_calls(1000, 100) < 2 * many


def test_B119_kin_a_rule_for_each_parameter_makes_one_group() -> None:
    model = many_layers(100)
    names = [name for name, _ in model.named_parameters()]
    rules = [{"pattern": name, "lr": 0.5} for name in names]
    (group,) = build_optimizer(model, {"param_groups": rules}).param_groups
    assert group["param_names"] == names


def test_B119_kin_each_class_has_as_many_groups_as_option_sets() -> None:
    rule = {"ndim": 2, "optimizer": "Muon"}
    rules = [{"pattern": f"l{i}.*", **rule, "lr": 0.1 * (i % 2)} for i in range(20)]
    container = build_optimizer(many_layers(20), {"param_groups": rules})
    assert len(container["AdamW"].param_groups) == 1
    assert [len(g["params"]) for g in container["Muon"].param_groups] == [10, 10]
