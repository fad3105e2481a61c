"""Clipping under closures, copies, nested steps and nulls."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

from case_helpers import sgd
from optim_hydra import (
    build_optimizer,
    grad_norm,
)


class Scaled(torch.optim.SGD):
    """Take the closure second."""

    def step(self, scale: float = 1.0, closure: Any = None) -> Any:
        return super().step(closure)


def test_null_under_the_old_clipping_key_switches_it_off(compose) -> None:
    yaml = "actor: {optim: {clip_grad: 0.5}}\ncritic: {optim: {clip_grad: 0.5}}\n"
    experiment = "# @package _global_\ncritic: {optim: {grad_clip: null}}\n"
    with pytest.warns(FutureWarning):
        cfg = compose(
            "actor.optim.grad_clip=null",
            "+experiment=off",
            yaml=yaml,
            files={"experiment/off.yaml": experiment},
        )
    assert (cfg.actor.optim.clip_grad, cfg.critic.optim.clip_grad) == (None, None)


def test_a_step_that_calls_its_base_records_the_norm_before_clipping(module) -> None:
    class Twice(torch.optim.AdamW):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer = build_optimizer(module, {"clip_grad": 0.1})  # wraps AdamW's step
    torch.optim.TwiceAdamW = Twice
    try:
        twice = build_optimizer(module, {"optimizer": "TwiceAdamW", "clip_grad": 0.1})
    finally:
        del torch.optim.TwiceAdamW
    for made in (optimizer, twice):
        made.zero_grad()
        (100 * module(torch.ones(2, 4))).sum().backward()
        made.step()
        assert grad_norm(made) > 100


@pytest.mark.parametrize("call", ["second", "keyword", "both"])
def test_a_closure_is_clipped_wherever_step_takes_it(module, call, monkeypatch) -> None:
    monkeypatch.setattr(torch.optim, "Scaled", Scaled, raising=False)
    config = sgd(optimizer="Scaled", lr=1.0, clip_grad=0.1)
    optimizer = build_optimizer(module, config)
    before = module.weight.detach().clone()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (100 * module(torch.ones(2, 4))).sum()
        loss.backward()
        return loss

    if call == "second":
        optimizer.step(1.0, closure)
    elif call == "keyword":
        optimizer.step(closure=closure)
    else:
        optimizer.step(1.0, closure=closure)
    assert (module.weight.detach() - before).norm() <= 0.1
    assert grad_norm(optimizer) > 100


def test_pickles_of_optimizers_that_do_not_clip_are_torchs_own(module) -> None:
    build_optimizer(module, {"clip_grad": 1.0})
    assert b"optim_hydra" not in pickle.dumps(torch.optim.AdamW(module.parameters()))
    twice = copy.deepcopy(copy.deepcopy(build_optimizer(module, {"clip_grad": 1.0})))
    (100 * twice.param_groups[0]["params"][0]).sum().backward()
    twice.step()
    assert grad_norm(twice) > 1
