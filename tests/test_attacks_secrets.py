"""What a resolver gave, such as a password, is shown as its reference."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.optim import SGD

from case_helpers import offer, refused
from optim_hydra import (
    ConfigError,
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    validate,
)

SECRET = "correct-horse"
EXTRA = "override_optimizer_config"


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setenv("PIN", "17")


def config(**items: Any) -> DictConfig:
    """Return a config with a secret of its own, reached directly and by way of keys."""
    tree = {"login": {"token": "${oc.env:TOKEN}", "user": "me"}, "optim": items}
    return OmegaConf.create({**tree, "alias": "${login.token}"})


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (
            {"lr": "${oc.env:TOKEN}"},
            "'${oc.env:TOKEN}' is not a float @ optim.lr",
        ),
        ({"lr": "${login.token}"}, "'${login.token}' is not a float @ optim.lr"),
        ({"lr": "${alias}"}, "'${alias}' is not a float @ optim.lr"),
        ({"lr": "${.eps}", "eps": "${alias}"}, "'${alias}' is not a float @ optim.eps"),
        (
            {"lr": "x-${oc.env:TOKEN}"},
            "'x-${oc.env:TOKEN}' is not a float @ optim.lr",
        ),
        ({"lr": "${login.user}"}, "'me' is not a float @ optim.lr"),
        (
            {"optimizer": "${oc.env:TOKEN}"},
            "'${oc.env:TOKEN}' is neither a Python name nor a dotted path of them"
            " @ optim.optimizer",
        ),
        (
            {"betas": [0.9, "${oc.env:TOKEN}"]},
            "'${oc.env:TOKEN}' is not a float @ optim.betas[1]",
        ),
        (
            {EXTRA: {"foreach": {"a": ["${oc.env:TOKEN}"]}}},
            "{'a': ['${oc.env:TOKEN}']} is not a bool: write true or false"
            " @ optim.override_optimizer_config.foreach",
        ),
        (
            {EXTRA: {"foreach": "${oc.env:PIN}"}},
            "'${oc.env:PIN}' is not a bool: write true or false"
            " @ optim.override_optimizer_config.foreach",
        ),
        (
            {"param_groups": [{"pattern": "*", "lr": "${oc.env:TOKEN}"}]},
            "'${oc.env:TOKEN}' is not a float @ optim.param_groups[0].lr",
        ),
        (
            {"lr_scheduler_type": "${oc.env:TOKEN}"},
            "no schedule '${oc.env:TOKEN}' (there are constant, ",
        ),
    ],
)
def test_an_error_shows_the_reference(
    module: nn.Module, items: dict[str, Any], message: str
) -> None:
    cfg = config(**items)
    text = str(refused(module, cfg.optim))
    assert message in text
    assert SECRET not in text
    with pytest.raises(ConfigError) as caught:
        validate(cfg, classes=True)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


def leaky(params: Any, token: str) -> None:
    msg = f"the token {token} is not valid"
    raise ValueError(msg)


class Leaks(SGD):
    """Take a token, and tell it to everybody where asked to."""

    def __init__(self, params: Any, lr: float = 1e-3, token: str = "", *, fail=False):
        if fail:
            leaky(params, token)
        super().__init__(params, lr)


@pytest.fixture
def leaks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    offer(monkeypatch, "leaky_impl", Leaks=Leaks)
    return {"optimizer_impl": "leaky_impl", "optimizer": "Leaks"}


def causes(error: BaseException | None) -> list[str]:
    found = []
    while error is not None:
        found.append(str(error))
        shown = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or shown
    return found


def test_an_error_of_the_class_shows_the_reference_and_has_no_cause_that_tells(
    module: nn.Module, leaks: dict[str, Any]
) -> None:
    cfg = config(**leaks, **{EXTRA: {"token": "${oc.env:TOKEN}", "fail": True}})
    error = refused(module, cfg.optim)
    assert str(error).endswith(
        "Leaks refuses its arguments: ValueError: the token ${oc.env:TOKEN} is not"
        " valid @ optim.override_optimizer_config.token"
    )
    assert not any(SECRET in text for text in causes(error))
    tree = OmegaConf.create({"actor": {"optim": cfg.optim}})
    tree.actor.optim[EXTRA].token = "${oc.env:TOKEN}"
    with pytest.raises(ConfigError) as caught:
        build_optimizers({"actor": module}, tree)
    assert not any(SECRET in text for text in causes(caught.value))


def test_a_cause_that_tells_nothing_stays(
    module: nn.Module, leaks: dict[str, Any]
) -> None:
    fields = {"token": "open", "fail": True}
    cfg = config(**leaks, lr_decay_style="${oc.decode:linear}", **{EXTRA: fields})
    error = refused(module, cfg.optim)
    assert isinstance(error.__cause__, ValueError)


def test_the_log_shows_the_reference_and_the_class_gets_the_value(
    module: nn.Module, leaks: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    taken = []
    leaks_init = Leaks.__init__
    cfg = config(**leaks, **{EXTRA: {"token": "${oc.env:TOKEN}"}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Leaks,
            "__init__",
            lambda self, params, lr=1e-3, token="": (
                taken.append(token),
                leaks_init(self, params, lr, token),
            )[0],
        )
        build_optimizer(module, cfg.optim)
    assert taken == [SECRET]
    assert "'token': '${oc.env:TOKEN}'" in caplog.text
    assert SECRET not in caplog.text


def test_an_error_of_the_schedule_shows_the_reference(module: nn.Module) -> None:
    optimizer = build_optimizer(module, {})
    cfg = config(min_lr_ratio="${oc.env:TOKEN}")
    with pytest.raises(ConfigError) as caught:
        build_lr_scheduler(optimizer, cfg.optim)
    assert str(caught.value) == "'${oc.env:TOKEN}' is not a float @ optim.min_lr_ratio"
