"""Odd but legal argument values arrive, others are refused by name."""

from __future__ import annotations

from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from functools import partialmethod
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import (
    ConfigError,
    build_optimizer,
)
from optim_hydra.arguments import plan_arguments
from optim_hydra.errors import Problems, UnknownKeyError
from optim_hydra.given import Given


def planned(cls: type, **values: Any) -> dict[str, Any]:
    """Fit further arguments to a class and return what it would be called with."""
    problems = Problems("optim")
    given = [Given(name, value, name) for name, value in values.items()]
    plan = plan_arguments(cls, given, problems, strict=True)
    problems.raise_if_any()
    return plan.kwargs


class Typed:
    """Take arguments whose defaults say little."""

    def __init__(
        self,
        params: Any,
        seed: int = 0,
        k: int | None = None,
        flag: bool | None = None,
        mode: Literal["int8", "fp8"] | None = None,
        eps: tuple[float | None, float] = (None, 1e-3),
        momentum: float = 0.9,
        norm: float | str | None = None,
        anything: Any = None,
    ) -> None:
        self.read = (seed, k, flag, mode, eps, momentum, norm, anything)


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ({"seed": 9007199254740993}, 9007199254740993),
        ({"seed": "9007199254740993"}, 9007199254740993),
        ({"k": "12"}, 12),
        ({"k": 12.0}, 12),
        ({"momentum": Fraction(1, 2)}, 0.5),
        ({"norm": float("inf")}, float("inf")),
        ({"norm": "l2"}, "l2"),
        ({"anything": [None]}, [None]),
        ({"mode": "int8"}, "int8"),
        ({"eps": ["1e-30", "1e-3"]}, (1e-30, 1e-3)),
        ({"eps": [None, 1]}, (None, 1.0)),
        ({"flag": None}, None),
    ],
)
def test_values_arrive_as_they_were_meant(given: dict[str, Any], held: Any) -> None:
    assert list(planned(Typed, **given).values()) == [held]


@pytest.mark.parametrize(
    "given",
    [
        {"k": "2.7"},
        {"k": "nan"},
        {"k": "inf"},
        {"flag": 5},
        {"flag": [1]},
        {"flag": "yes"},
        {"momentum": float("nan")},
        {"momentum": {"a": 1}},
    ],
)
def test_values_of_another_kind_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(Typed, **given)
    assert str(caught.value).endswith(f"@ optim.{next(iter(given))}")


NUMBER = "is not a number such as 0.9"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"momentum": b"0.9"}, f"a bytes {NUMBER}"),
        ({"momentum": np.array([0.9])}, f"a ndarray {NUMBER}"),
        ({"momentum": print}, f"a builtin_function_or_method {NUMBER}"),
        ({"momentum": {0.9}}, f"a set {NUMBER}"),
        ({"momentum": 1j}, f"a complex {NUMBER}"),
        ({"momentum": Decimal("0.9")}, f"a Decimal {NUMBER}"),
        ({"momentum": 10**5000}, "a int is not a finite number"),
        ({"k": float("nan")}, "nan is not a number"),
        ({"k": 2.5}, "2.5 is not an int"),
        ({"k": [1]}, "[1] is not an int"),
        ({"k": True}, "True is not an int"),
        ({"norm": b"l2"}, "a bytes is not a float or text"),
        ({"anything": float("nan")}, "nan is not a number"),
    ],
)
def test_what_is_no_number_is_refused_as_such(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(Typed, **given)
    assert str(caught.value) == f"{message} @ optim.{next(iter(given))}"


def test_bytes_are_no_list_of_numbers(module: nn.Module) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {"betas": bytes(2), "no_decay": b"", "lr": 10**5000})
    assert str(caught.value) == (
        "3 problems:\n"
        "  - a bytes is not a list of floats: write [0.9, 0.999] @ betas\n"
        "  - a bytes is not a list of words: write [bias, norm] @ no_decay\n"
        "  - a int is not a float @ lr"
    )


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"_target_": "torch.optim.SGD", "betas": [0.9, 0.99]}, "betas: leave it out"),
        (
            {"optimizer": "SGD", "override_optimizer_config": {"eps": 0.1}},
            "eps: leave it out",
        ),
        (
            {"optimizer": "SGD", "eps": 0.1},
            "eps: leave eps at its default, or set strict=false",
        ),
    ],
)
def test_only_a_field_has_a_default_to_be_left_at(
    module: nn.Module, node: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnknownKeyError) as caught:
        build_optimizer(module, node)
    assert str(caught.value).startswith(f"SGD takes no {message} (it takes lr, ")


def test_a_positional_only_parameter_and_a_partialmethod_can_be_configured() -> None:
    class Positional:
        def __init__(self, params: Any, /, lr: float = 1.0) -> None:
            self.lr = lr

    class Partial:
        def _init(self, params: Any, lr: float = 1.0, foreach: bool = False) -> None:
            self.lr, self.foreach = lr, foreach

        __init__ = partialmethod(_init, foreach=True)

    assert planned(Positional, lr=0.5) == {"lr": 0.5}
    assert planned(Partial, lr=0.5) == {"lr": 0.5}
    with pytest.raises(UnknownKeyError, match="takes no lrr: did you mean lr"):
        planned(Positional, lrr=0.5)


def test_numpy_and_config_values_become_plain(module: nn.Module, tmp_path) -> None:
    pair = namedtuple("pair", "first second")  # noqa: PYI024 - what users have
    node = {
        "lr": np.float32(0.5),
        "betas": OmegaConf.create([0.8, np.float64(0.9).item()]),
        "override_optimizer_config": {"foreach": np.bool_(False)},
    }
    optimizer = build_optimizer(module, node)
    assert optimizer.param_groups[0]["foreach"] is False
    groups = [{"params": module.parameters(), "betas": OmegaConf.create([0.7, 0.9])}]
    optimizer = build_optimizer(groups, {"lr": np.float64(0.1)})
    assert optimizer.param_groups[0]["betas"] == (0.7, 0.9)
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    torch.load(tmp_path / "optimizer.pt", weights_only=True)
    assert planned(Typed, eps=pair(None, 2)) == {"eps": (None, 2.0)}


def test_a_factory_can_be_used_twice(module: nn.Module, monkeypatch) -> None:
    class Pops(torch.optim.SGD):
        def __init__(self, params: Any, lr: float = 1e-3, extra: dict | None = None):
            super().__init__(params, lr=extra.pop("lr"))

    monkeypatch.setattr(torch.optim, "Pops", Pops, raising=False)
    node = {"_target_": "optim_hydra.build", "optimizer": "Pops"}
    node["override_optimizer_config"] = {"extra": {"lr": 0.5}}
    factory = instantiate({**node, "_recursive_": False, "weight_decay": 0.01})
    assert [factory(module).defaults["lr"] for _ in range(2)] == [0.5, 0.5]


def test_numbers_too_large_for_a_float_are_refused() -> None:
    with pytest.raises(ConfigError, match="is not a finite number"):
        planned(Typed, momentum=10**400)
    with pytest.raises(ConfigError, match="not a whole number such as 0"):
        planned(Typed, seed=2.5)
