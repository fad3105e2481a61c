"""What would only fail at the next step is refused while it can be."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import layers, refused_load, train, trained


@pytest.mark.parametrize(
    ("node", "switched", "key"),
    [
        ({}, {"amsgrad": True}, "amsgrad"),
        ({"optimizer": "RMSprop"}, {"momentum": 0.9}, "momentum"),
        ({"optimizer": "RMSprop"}, {"centered": True}, "centered"),
        (
            {"optimizer_impl": "pytorch_optimizer", "optimizer": "AdaBelief"},
            {"ams_bound": True},
            "ams_bound",
        ),
    ],
    ids=["amsgrad", "momentum", "centered", "ams_bound"],
)
def test_an_option_that_needs_more_state_than_was_kept(
    node: dict[str, Any], switched: dict[str, Any], key: str
) -> None:
    module = layers()
    saved = optimizer_state_dict(trained(module, node))
    resumed = build_optimizer(module, {**node, "override_optimizer_config": switched})
    assert refused_load(resumed, saved) == (
        f"{key} is on and was off when the state of 0.weight was saved: what it needs"
        " is missing"
    )


def test_momentum_that_sgd_starts_by_itself() -> None:
    module = layers()
    saved = optimizer_state_dict(trained(module, {"optimizer": "SGD"}))
    more = {"optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}}
    resumed = build_optimizer(module, more)
    numbers = torch.random.get_rng_state()
    report = load_optimizer_state_dict(resumed, saved)
    assert [d.key for d in report.differences] == ["momentum"]
    assert torch.equal(numbers, torch.random.get_rng_state())
    train(module, resumed, range(2, 4))


@pytest.mark.parametrize(
    ("before", "after"),
    [(torch.float32, torch.bfloat16), (torch.bfloat16, torch.float32)],
    ids=str,
)
def test_parameters_of_another_dtype_than_their_state_can_use(
    before: torch.dtype, after: torch.dtype
) -> None:
    module = layers().to(before)
    optimizer = build_optimizer(module, {})
    train(module, optimizer, range(2), lambda: torch.randn(8, 4, dtype=before))
    saved = copy.deepcopy(optimizer_state_dict(optimizer))
    module.to(after)
    assert refused_load(build_optimizer(module, {}), saved) == (
        f"0.weight is of {after} and its saved state of {before}, which AdamW can't use"
        " together"
    )


def test_state_without_values() -> None:
    module = layers()
    saved = optimizer_state_dict(trained(module, {}))
    saved["state.0.weight.exp_avg"] = torch.empty(4, 4, device="meta")
    assert refused_load(build_optimizer(module, {}), saved) == (
        "exp_avg of 0.weight has no values, it is on the meta device: load the file"
        " with map_location='cpu'"
    )


def test_one_vector_for_all_parameters_in_another_order() -> None:
    module = layers()
    node = {"optimizer": "LBFGS"}
    optimizer = build_optimizer(module, node, provides=["closure"])
    train(module, optimizer, range(3))
    saved = optimizer_state_dict(optimizer)
    children = reversed(list(module.named_children()))
    other = torch.nn.ModuleDict(dict(children))
    resumed = build_optimizer(other, node, provides=["closure"])
    assert refused_load(resumed, saved) == (
        "LBFGS keeps one vector for all parameters, saved in the order 0.weight,"
        " 0.bias, 1.weight and 3 more, and now they come as 2.weight, 2.bias, 1.weight"
        " and 3 more: build it in the saved order"
    )


def test_an_option_that_is_taken_from_a_checkpoint_without_its_state(
    module: nn.Module,
) -> None:
    saved = optimizer_state_dict(trained(module, {}))
    changed = {k: True if k.endswith(".amsgrad") else v for k, v in saved.items()}
    resumed = build_optimizer(copy.deepcopy(module), {})
    assert refused_load(resumed, changed, on_resume="checkpoint") == (
        "amsgrad was saved as on, and what it needs is not in the saved state of weight"
    )
