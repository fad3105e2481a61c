"""Lists of numbers, as public bug reports met them.

Cases: B04, B05, B12.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hydra.errors import HydraException
from torch import nn

from case_helpers import REFUSED, Compose, group_of, node, told
from optim_hydra import (
    ConfigError,
    build_optimizer,
)


def test_B04_betas_in_tuple_notation(compose: Compose) -> None:
    with pytest.raises(REFUSED) as caught:
        compose(yaml="actor:\n  optim:\n    betas: (0.9, 0.95)\n")
    assert "actor.optim.betas" in told(caught.value)
    assert "list" in told(caught.value)


def test_B04_betas_on_the_command_line(compose: Compose, module: nn.Module) -> None:
    with pytest.raises(HydraException, match="Ambiguous value") as caught:
        compose("actor.optim.betas=0.9,0.95")
    assert "actor.optim.betas" in str(caught.value)
    config = compose("actor.optim.betas=[0.9,0.95]")
    assert group_of(module, config.actor.optim)["betas"] == (0.9, 0.95)


@pytest.mark.parametrize("value", ["(0.9, 0.95)", "0.9", "0.9 0.95", 0.9])
def test_B04_kin_no_list_in_an_untyped_node(module: nn.Module, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node(betas=value))
    expected = f"{value!r} is not a list of floats: write [0.9, 0.999]"
    assert str(caught.value) == f"{expected} @ actor.optim.betas"


def test_B05_integer_betas_become_floats(compose: Compose, module: nn.Module) -> None:
    config = compose(yaml="actor:\n  optim:\n    betas: [0, 0.99]\n")
    optimizer = build_optimizer(module, config.actor.optim)
    betas = optimizer.param_groups[0]["betas"]
    assert betas == (0.0, 0.99)
    assert [type(betas), *map(type, betas)] == [tuple, float, float]
    before = module.weight.detach().clone()
    module(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    assert not torch.equal(module.weight, before)


@pytest.mark.parametrize("betas", ["[]", "[0.9]", "[0.9, 0.95, 0.99]"])
@pytest.mark.parametrize("optimizer", ["AdamW", "RAdam"])
def test_B05_other_lengths(
    compose: Compose, module: nn.Module, betas: str, optimizer: str
) -> None:
    override = f"actor.optim.betas={betas}"
    with pytest.raises(REFUSED) as caught:
        build_optimizer(
            module,
            compose(override, f"actor.optim.optimizer={optimizer}").actor.optim,
        )
    assert "actor.optim.betas" in told(caught.value)


@pytest.mark.parametrize("betas", [[1, 0.99], [0, 1], ["0", "0.99"]])
def test_B05_kin_ends_of_the_range_and_text(module: nn.Module, betas: Any) -> None:
    if betas == ["0", "0.99"]:
        assert group_of(module, node(betas=betas))["betas"] == (0.0, 0.99)
        return
    index = betas.index(1)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node(betas=betas))
    expected = f"1 is not a float in [0, 1) @ actor.optim.betas[{index}]"
    assert str(caught.value) == expected


@pytest.mark.parametrize(("item", "shown"), [("high", "'high'"), ("null", "none")])
def test_B12_wrong_element_of_a_list(compose: Compose, item: str, shown: str) -> None:
    for action in (
        lambda: compose(yaml=f"actor:\n  optim:\n    betas: [0.9, {item}]\n"),
        lambda: compose(f"actor.optim.betas=[0.9,{item}]"),
    ):
        with pytest.raises(REFUSED) as caught:
            action()
        assert "actor.optim.betas[1]" in told(caught.value)
        assert shown in told(caught.value)


@pytest.mark.parametrize(
    ("betas", "expected"),
    [
        (["low", 0.9], "'low' is not a float @ actor.optim.betas[0]"),
        ([0.9, True], "True is not a float @ actor.optim.betas[1]"),
        ([0.9, [0.9]], "[0.9] is not a float @ actor.optim.betas[1]"),
        (
            [0.9, None],
            "null is not allowed where a float is due @ actor.optim.betas[1]",
        ),
    ],
)
def test_B12_kin_untyped_list(module: nn.Module, betas: Any, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node(betas=betas))
    assert str(caught.value) == expected


def test_B12_kin_element_of_a_further_argument(module: nn.Module) -> None:
    adafactor = node(
        optimizer="Adafactor", override_optimizer_config={"eps": [1e-30, "high"]}
    )
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, adafactor)
    text = str(caught.value)
    assert text.startswith("'high' is not a number")
    assert text.endswith("@ actor.optim.override_optimizer_config.eps[1]")
