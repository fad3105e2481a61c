"""Further constructor arguments, as public bug reports met them.

Cases: B29, B31, B33.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hydra.errors import HydraException
from torch import nn

from case_helpers import EXTRA, Compose, extra_yaml_of, group_of, refused
from optim_hydra import ConfigError, build_optimizer


def assert_passed(group: dict[str, Any], expected: dict[str, Any]) -> None:
    """Assert that the group has these values, each of the type written."""
    assert {key: group[key] for key in expected} == expected
    assert [type(group[key]) for key in expected] == [*map(type, expected.values())]


@pytest.mark.parametrize(
    ("name", "extra", "expected"),
    [
        (
            "SGD",
            "{momentum: 0.9, nesterov: true}",
            {"momentum": 0.9, "nesterov": True},
        ),
        ("Adagrad", "{lr_decay: 0.1}", {"lr_decay": 0.1}),
        ("RMSprop", "{alpha: 0.95}", {"alpha": 0.95}),
    ],
)
def test_B29_further_arguments_reach_every_class(
    compose: Compose, module: nn.Module, name: str, extra: str, expected: dict[str, Any]
) -> None:
    config = compose(yaml=extra_yaml_of(name, extra))
    assert_passed(group_of(module, config.actor.optim), expected)


@pytest.mark.parametrize(
    ("name", "extra", "expected"),
    [
        ("Adadelta", "{rho: 0.8}", {"rho": 0.8}),
        ("NAdam", "{momentum_decay: 0.01}", {"momentum_decay": 0.01}),
        (
            "Rprop",
            "{etas: [0.4, 1.5], step_sizes: [1e-5, 40]}",
            {"etas": (0.4, 1.5), "step_sizes": (1e-5, 40)},
        ),
    ],
)
def test_B29_kin_more_classes(
    compose: Compose, module: nn.Module, name: str, extra: str, expected: dict[str, Any]
) -> None:
    config = compose(yaml=extra_yaml_of(name, extra))
    assert_passed(group_of(module, config.actor.optim), expected)


def test_B31_fused_and_foreach_exclude_each_other(
    compose: Compose, module: nn.Module
) -> None:
    config = compose(f"+{EXTRA}.fused=true", f"+{EXTRA}.foreach=true")
    text = str(refused(module, config.actor.optim))
    assert "fused and foreach exclude each other" in text
    assert f"{EXTRA}.fused" in text
    assert "override_optimizer_config.foreach" in text


@pytest.mark.parametrize("foreach", ["false", "null"])
def test_B31_fused_alone(compose: Compose, module: nn.Module, foreach: str) -> None:
    config = compose(f"+{EXTRA}.fused=true", f"+{EXTRA}.foreach={foreach}")
    optimizer = build_optimizer(module, config.actor.optim)
    group = optimizer.param_groups[0]
    assert group["fused"] is True
    assert group["foreach"] is {"false": False, "null": None}[foreach]
    module(torch.ones(3, 4)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("implementation", "extra"), [("fused", "foreach"), ("foreach", "fused")]
)
def test_B31_kin_by_implementation(
    compose: Compose, module: nn.Module, implementation: str, extra: str
) -> None:
    config = compose(
        f"actor.optim.implementation={implementation}", f"+{EXTRA}.{extra}=true"
    )
    text = str(refused(module, config.actor.optim))
    assert "implementation" in text
    assert f"override_optimizer_config.{extra}" in text


@pytest.mark.parametrize("yaml", ["", extra_yaml_of("AdamW", "null")], ids=["", "null"])
@pytest.mark.parametrize(
    "override",
    [
        f"+{EXTRA}.eps=1e-6",
        f"++{EXTRA}.eps=1e-6",
        f"{EXTRA}={{eps:1e-6}}",
        f"++{EXTRA}={{eps:1e-6}}",
    ],
)
def test_B33_further_arguments_from_the_command_line(
    compose: Compose, module: nn.Module, override: str, yaml: str
) -> None:
    group = group_of(module, compose(override, yaml=yaml).actor.optim)
    assert (group["eps"], group["betas"]) == (1e-6, (0.9, 0.999))


def test_B33_the_dotted_form_without_plus(compose: Compose, module: nn.Module) -> None:
    override = f"{EXTRA}.eps=1e-6"
    assert group_of(module, compose(override).actor.optim)["eps"] == 1e-6
    # Null takes away the open mapping; Hydra's hint is the way to add to nothing.
    with pytest.raises(HydraException, match=rf"use \+{EXTRA}.eps=1e-6"):
        compose(override, yaml=extra_yaml_of("AdamW", "null"))


@pytest.mark.parametrize("override", [f"{EXTRA}.a.b=1", f"+{EXTRA}.params=null"])
def test_B33_kin_no_assertion_reaches_the_user(
    compose: Compose, module: nn.Module, override: str
) -> None:
    with pytest.raises((HydraException, ConfigError)) as caught:
        group_of(
            module, compose(override, yaml=extra_yaml_of("AdamW", "null")).actor.optim
        )
    assert EXTRA in str(caught.value)
    assert "AssertionError" not in repr(caught.getrepr(style="native"))


def test_B33_kin_added_to_what_the_file_has(
    compose: Compose, module: nn.Module
) -> None:
    yaml = extra_yaml_of("SGD", "{momentum: 0.9}")
    group = group_of(module, compose(f"+{EXTRA}.nesterov=true", yaml=yaml).actor.optim)
    assert (group["momentum"], group["nesterov"]) == (0.9, True)
    group = group_of(module, compose(f"{EXTRA}.momentum=0.5", yaml=yaml).actor.optim)
    assert group["momentum"] == 0.5
