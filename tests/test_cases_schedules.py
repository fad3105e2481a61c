"""Warmup and decay over the steps, as public bug reports met them.

Cases: B50, B51, B52, B53, B55.
"""

from __future__ import annotations

import logging
from math import cos, pi

import pytest
from torch import nn

from case_helpers import COSINE, Compose, exact, rates, refused_rates

RATIO = """\
actor:
  optim:
    lr: 1e-3
    lr_warmup_steps_ratio: 0.1
    total_training_steps: 100
"""


def test_B50_warmup_starts_at_zero(compose: Compose, module: nn.Module) -> None:
    yaml = """\
actor:
  optim:
    lr: 1e-3
    lr_scheduler_type: constant
    lr_warmup_steps: 10
    total_training_steps: 110
"""
    found = rates(module, compose(yaml=yaml), 0, 1, 5, 9, 10, 11, 110)
    assert found == exact(0, 1e-4, 5e-4, 9e-4, 1e-3, 1e-3, 1e-3)
    assert (found[0], found[4], found[6]) == (0.0, 1e-3, 1e-3)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("actor.optim.zero_indexed_step=false", (1e-4, 2e-4, 1e-3, 1e-3)),
        ("actor.optim.lr_warmup_init_ratio=0.5", (5e-4, 5.5e-4, 9.5e-4, 1e-3)),
        ("actor.optim.lr_warmup_steps=1", (0, 1e-3, 1e-3, 1e-3)),
    ],
)
def test_B50_kin_the_start_is_configurable(
    compose: Compose, module: nn.Module, override: str, expected: tuple[float, ...]
) -> None:
    warmup = "actor.optim.lr_warmup_steps=10"
    overrides = [override] if "lr_warmup_steps" in override else [warmup, override]
    assert rates(module, compose(*overrides), 0, 1, 9, 10) == exact(*expected)


def test_B51_cosine_ends_at_the_floor(compose: Compose, module: nn.Module) -> None:
    found = rates(module, compose(yaml=COSINE), 0, 5, 10, 35, 60, 85, 110)
    at_35 = 1e-3 * (0.1 + 0.9 * (1 + cos(pi / 4)) / 2)
    at_85 = 1e-3 * (0.1 + 0.9 * (1 - cos(pi / 4)) / 2)
    assert found == exact(0, 5e-4, 1e-3, at_35, 5.5e-4, at_85, 1e-4)
    assert [f"{found[3]:.4e}", f"{found[5]:.4e}"] == ["8.6820e-04", "2.3180e-04"]


@pytest.mark.parametrize("floor", ["null", "0", "0.0"])
def test_B51_without_a_floor(compose: Compose, module: nn.Module, floor: str) -> None:
    config = compose(f"actor.optim.min_lr_ratio={floor}", yaml=COSINE)
    assert rates(module, config, 60, 110) == exact(5e-4, 0)


@pytest.mark.parametrize("name", ["linear", "wsd"])
def test_B51_kin_other_schedules_end_at_the_floor(
    compose: Compose, module: nn.Module, name: str
) -> None:
    config = compose(f"actor.optim.lr_scheduler_type={name}", yaml=COSINE)
    middle = {"linear": 5.5e-4, "wsd": 1e-3}[name]
    assert rates(module, config, 60, 110, 300) == exact(middle, 1e-4, 1e-4)


def test_B52_warmup_as_steps_and_as_ratio(compose: Compose, module: nn.Module) -> None:
    text = refused_rates(module, compose("actor.optim.lr_warmup_steps=20", yaml=RATIO))
    assert text == (
        "lr_warmup_steps=20 and lr_warmup_steps_ratio=0.1 (10 of 100 steps) disagree:"
        " set lr_warmup_steps_ratio=0 or lr_warmup_steps=-1"
        " @ actor.optim.lr_warmup_steps"
    )
    config = compose("actor.optim.lr_warmup_steps=10", yaml=RATIO)
    assert rates(module, config, 5, 10) == exact(5e-4, 1e-3)


@pytest.mark.parametrize(
    ("steps", "ratio", "total"), [(29, 0.29, 100), (1, 0.05, 10), (3, 1.0, 3)]
)
def test_B52_kin_steps_that_agree_with_the_ratio(
    compose: Compose, module: nn.Module, steps: int, ratio: float, total: int
) -> None:
    by_ratio = compose(f"actor.optim.lr_warmup_steps_ratio={ratio}")
    both = compose(
        f"actor.optim.lr_warmup_steps={steps}",
        f"actor.optim.lr_warmup_steps_ratio={ratio}",
    )
    for config in (by_ratio, both):
        found = rates(module, config, 0, steps, total=total)
        assert found == exact(0, 1e-3)
    one_more = compose(
        f"actor.optim.lr_warmup_steps={steps - 1}",
        f"actor.optim.lr_warmup_steps_ratio={ratio}",
        f"actor.optim.total_training_steps={total}",
    )
    if steps > 1:
        assert f"({steps} of {total} steps)" in refused_rates(module, one_more)


def test_B53_zero_steps_are_no_warmup(compose: Compose, module: nn.Module) -> None:
    config = compose("actor.optim.lr_warmup_steps=0", yaml=RATIO)
    assert rates(module, config, 0, 1, 5, 100) == [1e-3] * 4


@pytest.mark.parametrize("unset", ["-1", "null"])
def test_B53_unset_steps_take_the_ratio(
    compose: Compose, module: nn.Module, unset: str
) -> None:
    config = compose(f"actor.optim.lr_warmup_steps={unset}", yaml=RATIO)
    assert rates(module, config, 0, 5, 10) == exact(0, 5e-4, 1e-3)


def test_B53_kin_zero_needs_no_total(compose: Compose, module: nn.Module) -> None:
    config = compose(
        "actor.optim.lr_warmup_steps=0", "actor.optim.lr_warmup_steps_ratio=0.1"
    )
    assert rates(module, config, 0, 3) == [1e-3, 1e-3]
    assert "-2" in refused_rates(module, compose("actor.optim.lr_warmup_steps=-2"))


def test_B55_ratio_out_of_range(compose: Compose, module: nn.Module) -> None:
    total = "actor.optim.total_training_steps=100"
    text = refused_rates(module, compose("actor.optim.lr_warmup_steps_ratio=10", total))
    assert text == (
        "10.0 is not a float in [0, 1]: a number of steps goes into lr_warmup_steps"
        " @ actor.optim.lr_warmup_steps_ratio"
    )
    text = refused_rates(
        module, compose("actor.optim.lr_warmup_steps_ratio=-0.1", total)
    )
    expected = "-0.1 is not a float in [0, 1] @ actor.optim.lr_warmup_steps_ratio"
    assert text == expected


def test_B55_large_ratio_is_logged(
    compose: Compose, module: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "optim_hydra")
    total = "actor.optim.total_training_steps=100"
    config = compose("actor.optim.lr_warmup_steps_ratio=0.95", total)
    assert rates(module, config, 95) == exact(1e-3)
    (line,) = [text for text in caplog.messages if "95 of 100" in text]
    assert "actor.optim" in line
    config = compose("actor.optim.lr_warmup_steps_ratio=1.0", total)
    assert rates(module, config, 50, 100) == exact(5e-4, 1e-3)


@pytest.mark.parametrize(("ratio", "is_logged"), [(0.5, False), (0.51, True)])
def test_B55_kin_from_which_ratio_on(
    compose: Compose,
    module: nn.Module,
    caplog: pytest.LogCaptureFixture,
    ratio: float,
    is_logged: bool,
) -> None:
    config = compose(f"actor.optim.lr_warmup_steps_ratio={ratio}")
    rates(module, config, 0, total=100)
    assert any(f"{ratio * 100:.0f} of 100" in m for m in caplog.messages) is is_logged


@pytest.mark.parametrize(
    "key", ["min_lr_ratio", "lr_warmup_init_ratio", "lr_decay_steps_ratio"]
)
@pytest.mark.parametrize("value", ["1.01", "-0.1", "nan"])
def test_B55_kin_every_ratio_has_the_range(
    compose: Compose, module: nn.Module, key: str, value: str
) -> None:
    text = refused_rates(module, compose(f"actor.optim.{key}={value}"))
    assert f"{value} is not a float in [0, 1]" in text
    assert f"@ actor.optim.{key}" in text
