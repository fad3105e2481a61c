"""The number of steps and the floor of a schedule, as public bug reports met them.

Cases: B60, B61, B67.
"""

from __future__ import annotations

from typing import Any

import pytest
from hydra.errors import HydraException
from torch import nn

from case_helpers import COSINE, Compose, exact, rates, refused_rates
from optim_hydra import ConfigError, build_optimizer


def test_B60_cosine_stays_at_the_floor(compose: Compose, module: nn.Module) -> None:
    found = rates(module, compose(yaml=COSINE), 110, 111, 120, 500)
    assert found == exact(1e-4, 1e-4, 1e-4, 1e-4)
    assert len(set(found)) == 1


@pytest.mark.parametrize("num_cycles", [0.25, 1.0, 1.5])
def test_B60_kin_other_cycles_stay_where_they_end(
    compose: Compose, module: nn.Module, num_cycles: float
) -> None:
    config = compose(f"actor.optim.num_cycles={num_cycles}", yaml=COSINE)
    end = {0.25: 5.5e-4, 1.0: 1e-3, 1.5: 1e-4}[num_cycles]
    assert rates(module, config, 110, 111, 170, 400) == exact(end, end, end, end)


@pytest.mark.parametrize("name", ["linear", "wsd"])
def test_B60_kin_other_schedules_stay_at_the_floor(
    compose: Compose, module: nn.Module, name: str
) -> None:
    config = compose(
        f"actor.optim.lr_scheduler_type={name}",
        "actor.optim.min_lr_ratio=null",
        yaml=COSINE,
    )
    assert rates(module, config, 110, 111, 120, 500) == exact(0, 0, 0, 0)


def test_B61_decay_without_a_total(compose: Compose, module: nn.Module) -> None:
    yaml = "actor:\n  optim:\n    lr_scheduler_type: cosine\n"
    text = refused_rates(module, compose(yaml=yaml))
    assert "cosine" in text
    assert text.endswith("@ actor.optim.total_training_steps")
    assert rates(module, compose(yaml=yaml), 0, 5, total=10) == exact(1e-3, 5e-4)


def test_B61_ratio_without_a_total(compose: Compose, module: nn.Module) -> None:
    text = refused_rates(module, compose("actor.optim.lr_warmup_steps_ratio=0.1"))
    assert "lr_warmup_steps_ratio=0.1" in text
    assert text.endswith("@ actor.optim.total_training_steps")


def test_B61_steps_need_no_total(compose: Compose, module: nn.Module) -> None:
    config = compose("actor.optim.lr_warmup_steps=10")
    assert rates(module, config, 0, 5, 10, 1000) == exact(0, 5e-4, 1e-3, 1e-3)


@pytest.mark.parametrize("name", ["linear", "wsd"])
def test_B61_kin_other_schedules(
    compose: Compose, module: nn.Module, name: str
) -> None:
    text = refused_rates(module, compose(f"actor.optim.lr_scheduler_type={name}"))
    assert name in text
    assert text.endswith("@ actor.optim.total_training_steps")


def test_B61_kin_more_warmup_than_steps(compose: Compose, module: nn.Module) -> None:
    config = compose("actor.optim.lr_warmup_steps=11")
    text = refused_rates(module, config, total=10)
    assert "lr_warmup_steps=11" in text
    assert "total_training_steps=10" in text
    assert rates(module, config, 0, total=11) == [0.0]


@pytest.mark.parametrize("total", [0, -5, 10.5, True])
def test_B61_kin_no_total_from_the_trainer(
    compose: Compose, module: nn.Module, total: Any
) -> None:
    text = refused_rates(module, compose(), total=total)
    assert f"{total} is not" in text
    assert text.endswith("@ actor.optim.total_training_steps")


ABSOLUTE = [
    "actor.optim.lr=1e-3",
    "actor.optim.lr_scheduler_type=cosine",
    "actor.optim.total_training_steps=110",
]


@pytest.mark.parametrize("prefix", ["+", "++", ""])
def test_B67_absolute_floor(compose: Compose, prefix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose(f"{prefix}actor.optim.min_lr=1e-4", *ABSOLUTE)
    assert "write min_lr_ratio, a share of lr (0.1 here)" in str(caught.value)
    assert str(caught.value).endswith("@ actor.optim.min_lr")


@pytest.mark.parametrize("ratio", ["1.5", "-0.1"])
def test_B67_floor_out_of_range(
    compose: Compose, module: nn.Module, ratio: str
) -> None:
    text = refused_rates(
        module, compose(f"actor.optim.min_lr_ratio={ratio}", *ABSOLUTE)
    )
    assert f"{ratio} is not a float in [0, 1]" in text
    assert "actor.optim.min_lr_ratio" in text


@pytest.mark.parametrize(("key", "new"), [("lr_min", "min_lr_ratio")])
def test_B67_kin_other_names_of_the_floor(compose: Compose, key: str, new: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose(f"+actor.optim.{key}=2e-5", *ABSOLUTE)
    assert f"write {new}, a share of lr (0.02 here)" in str(caught.value)
    assert str(caught.value).endswith(f"@ actor.optim.{key}")


def test_B67_kin_untyped_node_and_unknown_name(
    compose: Compose, module: nn.Module
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {"lr": 1e-3, "min_lr": 1e-5})
    assert "write min_lr_ratio, a share of lr (0.01 here)" in str(caught.value)
    with pytest.raises((ConfigError, HydraException), match="no field minlr"):
        build_optimizer(module, compose("+actor.optim.minlr=1e-5").actor.optim)
