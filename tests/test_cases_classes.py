"""Choosing the optimizer class, as public bug reports met it.

Cases: B13, B14, B16, B19.
"""

from __future__ import annotations

from pathlib import Path

import hydra
import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

from case_helpers import Compose, offer, refused
from optim_hydra import ConfigError, build_optimizer


def test_B13_typo_in_the_name(compose: Compose, module: nn.Module) -> None:
    config = compose("actor.optim.optimizer=Adamw")
    text = str(refused(module, config.actor.optim))
    assert f"optimizer_impl=torch.optim (torch {torch.__version__})" in text
    assert "has no Adamw: did you mean AdamW, Adam, RAdam?" in text
    assert text.endswith("@ actor.optim.optimizer")
    assert len(text) < 600


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("sgd", "SGD"), ("RMSProp", "RMSprop"), ("lr_schedule", ""), ("AdamX", "Adam")],
)
def test_B13_kin_suggestions_are_optimizers(
    compose: Compose, module: nn.Module, name: str, nearest: str
) -> None:
    text = str(refused(module, compose(f"actor.optim.optimizer={name}").actor.optim))
    assert f"has no {name}" in text
    assert text.endswith("@ actor.optim.optimizer")
    assert len(text) < 600
    _, found, suggestions = text.partition("did you mean ")
    assert bool(found) == bool(nearest)
    names = suggestions.partition("?")[0].split(", ") if found else []
    assert nearest in [*names, ""]
    for suggested in names:
        assert issubclass(getattr(torch.optim, suggested), Optimizer)


@pytest.mark.parametrize("name", ["lr_scheduler", "Optimizer", "swa_utils"])
def test_B13_kin_a_helper_is_no_optimizer(
    compose: Compose, module: nn.Module, name: str
) -> None:
    text = str(refused(module, compose(f"actor.optim.optimizer={name}").actor.optim))
    assert text.endswith("@ actor.optim.optimizer")
    assert f"torch.optim.{name} is" in text


def test_B14_the_class_has_left_the_module(
    compose: Compose, module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, "my_impl")
    yaml = "actor:\n  optim:\n    optimizer_impl: my_impl\n    optimizer: AdamW\n"
    assert str(refused(module, compose(yaml=yaml).actor.optim)) == (
        "optimizer_impl=my_impl was imported but has no AdamW; torch.optim has one:"
        " optimizer_impl=torch.optim @ actor.optim.optimizer"
    )


def test_B14_kin_the_version_and_the_near_names(
    compose: Compose, module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, "my_impl", AdamW2=AdamW, AdamWidth=3, Adamax=SGD)
    config = compose(
        "actor.optim.optimizer_impl=my_impl", "critic.optim.optimizer_impl=omegaconf"
    )
    text = str(refused(module, config.actor.optim))
    assert "has no AdamW: did you mean AdamW2, Adamax?; torch.optim has one" in text
    text = str(refused(module, config.critic.optim))
    assert "optimizer_impl=omegaconf (omegaconf 2." in text
    assert "was imported but has no AdamW" in text


MISSING = """\
actor:
  optim:
    optimizer_impl: surely_missing_pkg.optim
    optimizer: AdamW8bit
"""


def test_B16_optional_package_missing(compose: Compose, module: nn.Module) -> None:
    config = compose(yaml=MISSING)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim)
    text = str(caught.value)
    assert "surely_missing_pkg.optim is not installed" in text
    assert "not installed: install" in text
    assert text.endswith("@ actor.optim.optimizer_impl")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    assert type(build_optimizer(module, config.critic.optim)) is AdamW


def test_B16_kin_only_the_optimizer_asked_for(
    compose: Compose, module: nn.Module
) -> None:
    config = compose(yaml=MISSING)
    factories = hydra.utils.instantiate(config)
    assert type(factories["critic"]["optim"](module)) is AdamW
    with pytest.raises(ConfigError, match="surely_missing_pkg"):
        factories["actor"]["optim"](module)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import also_missing_pkg", "needs the module also_missing_pkg"),
        ("1 / 0", "fails while it is imported: ZeroDivisionError: division by zero"),
    ],
)
def test_B16_kin_installed_but_broken(
    compose: Compose,
    module: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    source: str,
    said: str,
) -> None:
    (tmp_path / "broken_impl.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    config = compose("actor.optim.optimizer_impl=broken_impl")
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim)
    assert f"broken_impl {said}" in str(caught.value)
    assert str(caught.value).endswith("@ actor.optim.optimizer_impl")
    assert isinstance(caught.value.__cause__, (ImportError, ZeroDivisionError))


@pytest.mark.parametrize(
    "overrides",
    [
        ["actor.optim.optimizer=torch.optim.SGD"],
        [
            "actor.optim.optimizer=torch.optim.SGD",
            "actor.optim.optimizer_impl=torch.optim",
        ],
        ["actor.optim.optimizer=torch.optim.sgd.SGD"],
    ],
)
def test_B19_dotted_path_in_optimizer(
    compose: Compose, module: nn.Module, overrides: list[str]
) -> None:
    optimizer = build_optimizer(module, compose(*overrides).actor.optim)
    assert type(optimizer) is SGD


@pytest.mark.parametrize("path", ["torch.optim.SGD", "torch.optim.sgd.SGD"])
def test_B19_dotted_path_against_another_impl(
    compose: Compose, module: nn.Module, path: str
) -> None:
    overrides = [f"actor.optim.optimizer={path}", "actor.optim.optimizer_impl=my_impl"]
    impl = path.removesuffix(".SGD")
    assert str(refused(module, compose(*overrides).actor.optim)).splitlines()[0] == (
        f"{path} is in {impl}, but optimizer_impl is my_impl: write"
        f" optimizer_impl={impl} optimizer=SGD @ actor.optim.optimizer"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("torch.optim.Sgd", "has no Sgd: did you mean SGD, ASGD?"),
        ("torch.optimm.SGD", "torch has no optimm: did you mean optim?"),
        ("surely_missing_pkg.SGD", "surely_missing_pkg is not installed"),
        ("torch.optim.SGD()", "'torch.optim.SGD()' is neither a Python name"),
    ],
)
def test_B19_kin_wrong_path(
    compose: Compose, module: nn.Module, path: str, said: str
) -> None:
    override = f"actor.optim.optimizer='{path}'"
    text = str(refused(module, compose(override).actor.optim))
    assert said in text
    assert text.endswith("@ actor.optim.optimizer")
