"""Broken and hostile classes, modules and targets."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest
import torch
from hydra.utils import instantiate
from torch import nn

from optim_hydra import (
    ConfigError,
    build_optimizer,
    register_optimizer,
    register_schedule,
    validate,
)
from optim_hydra.declared import DECLARED, NameTakenError, set_allowed_impls
from optim_hydra.errors import WrongObjectError


class Broken(torch.optim.Optimizer):
    """Forget to call the base class."""

    def __init__(self, params: Any, lr: float = 1e-3) -> None: ...

    def step(self, closure: Any = None) -> None: ...


class Exits(torch.optim.SGD):
    """Leave the program instead of raising."""

    def __init__(self, params: Any, lr: float = 1e-3) -> None:
        raise SystemExit(3)


EVIL = "actor.optim.override_optimizer_config={foreach: {_target_: builtins.print}}"


@pytest.mark.parametrize(
    ("cls", "message"), [(Broken, "makes no optimizer"), (Exits, "SystemExit: 3")]
)
def test_a_broken_class_is_an_error_of_ours(
    module: nn.Module, cls: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.optim, "BrokenOne", cls, raising=False)
    with pytest.raises(ConfigError, match=message):
        build_optimizer(module, {"optimizer": "BrokenOne"})


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit(0)", "def __getattr__(name): raise RuntimeError(1)"]
)
def test_a_broken_module_is_an_error_of_ours(
    module: nn.Module, code: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_impl.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_impl", raising=False)
    with pytest.raises(ConfigError, match="odd_impl"):
        build_optimizer(module, {"optimizer_impl": "odd_impl", "optimizer": "A"})


@pytest.mark.parametrize("path", ["optim_hydra.builder.logging", "optim_hydra.build.x"])
def test_only_the_librarys_own_target_is_ours(compose, path: str) -> None:
    with pytest.raises(ConfigError, match=f"not to {path}"):
        validate(compose(f"actor.optim._target_={path}"))


@pytest.mark.parametrize("more", [(), ("actor.optim._recursive_=true",)])
@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_hidden_target_is_never_called(
    compose, more: tuple[str, ...], strict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cfg = compose(EVIL, f"actor.optim.strict={strict}", *more)
    for check in (validate, instantiate, lambda c: instantiate(c.actor.optim)):
        with pytest.raises(Exception, match="_target_ is refused here"):
            check(cfg)
    assert capsys.readouterr().out == ""


def test_names_belong_to_one_thing() -> None:
    register_optimizer("mine", torch.optim.SGD)
    with pytest.raises(NameTakenError, match="'mine' stands for torch"):
        register_optimizer("mine", "torch.optim.Adam")
    with pytest.raises(NameTakenError, match="'linear' is already"):
        register_schedule("linear")(lambda step: 1.0 / step)


def test_a_registered_name_hides_no_class(module: nn.Module) -> None:
    register_optimizer("AdamW", torch.optim.SGD)
    register_optimizer("AdamW8bit", torch.optim.SGD)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {})
    assert str(caught.value) == (
        "AdamW is a class of torch.optim and is registered for torch.optim.sgd.SGD:"
        " register another name @ optimizer"
    )
    config = {"optimizer_impl": "torchao.optim", "optimizer": "AdamW8bit"}
    assert type(build_optimizer(module, config)).__module__.startswith("torchao")
    assert type(build_optimizer(module, {"optimizer": "AdamW8bit"})) is torch.optim.SGD


def test_a_set_of_letters_is_no_allow_list(module: nn.Module) -> None:
    set_allowed_impls("torch.optim")
    build_optimizer(module, {})
    with pytest.raises(ConfigError, match="not among the modules this program allows"):
        build_optimizer(module, {"optimizer_impl": "torchao.optim", "optimizer": "A"})


@pytest.mark.parametrize(
    ("impls", "shown"),
    [
        (["torch.optim", "torch.*"], "'torch.*'"),
        ("", "''"),
        ([None], "None"),
        (b"torch", "b'torch'"),
        (5, "5"),
    ],
)
def test_only_whole_names_of_modules_are_allowed(impls: Any, shown: str) -> None:
    set_allowed_impls("torch.optim")
    with pytest.raises(WrongObjectError) as caught:
        set_allowed_impls(impls)
    assert str(caught.value) == (
        "set_allowed_impls takes whole names of modules, such as torch.optim, not"
        f" {shown}"
    )
    assert DECLARED.allowed_impls == {"torch.optim"}


def test_nothing_at_all_can_be_allowed(module: nn.Module) -> None:
    set_allowed_impls([])
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {})
    assert str(caught.value) == (
        "torch.optim is not among the modules this program allows: none; the program"
        " itself adds one by set_allowed_impls @ optimizer_impl"
    )


def test_errors_travel_between_processes(module: nn.Module) -> None:
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {"lr": -1, "optimizer_impl": "surely_missing_pkg"})
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (type(copied), str(copied)) == (ConfigError, str(caught.value))
    assert copied.problems == caught.value.problems


def test_a_hidden_target_behind_a_reference_is_never_called(compose, capsys) -> None:
    cfg = compose(
        "+evil={foreach: {_target_: builtins.print, _args_: [HACKED]}}",
        "actor.optim.override_optimizer_config=${evil}",
        "actor.optim._recursive_=true",
    )
    with pytest.raises(Exception, match="_target_ is refused here"):
        instantiate(cfg.actor.optim)
    assert capsys.readouterr().out == ""


def test_a_registered_name_belongs_to_the_default_module(module: nn.Module) -> None:
    register_optimizer("plain", torch.optim.SGD)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {"optimizer_impl": "omegaconf", "optimizer": "plain"})
    message = str(caught.value)
    assert "for the registered name leave optimizer_impl at torch.optim" in message
    assert "did you mean plain" not in message
