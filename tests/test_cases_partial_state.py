"""Parameters that have no state, or none any more, as public bug reports met them.

Cases: B74, B75.
"""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from case_helpers import Compose, yaml_of
from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import (
    FORMS,
    bits,
    bits_of,
    in_each_form,
    kept_for,
    layers,
    refused_load,
    through_file,
    train,
    trained,
)

HEAD = ["1.weight", "1.bias", "2.weight", "2.bias"]


class Used(nn.Module):
    """Compute with one of two layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.used = nn.Linear(2, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x)


def pairs() -> Tensor:
    return torch.randn(8, 2)


def first_frozen() -> nn.Sequential:
    module = layers()
    module[0].requires_grad_(False)
    return module


@in_each_form
def test_B74_stateless_optimizers_round_trip_to_no_state(
    form: str, compose: Compose, tmp_path: Path
) -> None:
    config = compose(yaml=yaml_of("optimizer: SGD, lr: 1e-2")).actor.optim
    module = Used()
    optimizer = build_optimizer(module, config)
    for step in range(2):
        saved = through_file(FORMS[form](module, optimizer), tmp_path)
        module = copy.deepcopy(module)
        optimizer = build_optimizer(module, config)
        load_optimizer_state_dict(optimizer, saved)
        assert not any(optimizer.state.values())
        before = bits(module.used.weight)
        train(module, optimizer, [step], pairs)
        assert bits(module.used.weight) != before


@in_each_form
@pytest.mark.parametrize("optimizer", ["AdamW", "Adagrad", "RMSprop"])
def test_B74_parameters_without_a_gradient_so_far_are_no_obstacle(
    optimizer: str, form: str, tmp_path: Path
) -> None:
    module, config = Used(), {"optimizer": optimizer}
    first = build_optimizer(module, config)
    train(module, first, [0], pairs)
    saved = through_file(FORMS[form](module, first), tmp_path)
    resumed = build_optimizer(module, config)
    load_optimizer_state_dict(resumed, saved)
    assert kept_for(resumed) == kept_for(first)
    assert {"used.weight", "used.bias"} <= kept_for(resumed).keys()
    module.forward = lambda x: module.unused(module.used(x))
    train(module, resumed, [1], pairs)


def test_B74_kin_parameters_that_start_without_state_are_listed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = Used()
    first = build_optimizer(module, {})
    train(module, first, [0], pairs)
    report = load_optimizer_state_dict(
        build_optimizer(module, {}), optimizer_state_dict(first)
    )
    assert report.num_restored == 2
    assert report.fresh == ["unused.weight", "unused.bias"]
    assert "started unused.weight, unused.bias without state" in caplog.text


@pytest.mark.parametrize("form", ["nested", "flattened"])
def test_B74_kin_an_empty_group_in_a_file_is_no_group(form: str) -> None:
    module = layers()
    names = dict(module.named_parameters())
    groups = [{"params": list(names.values()), "lr": 0.1}, {"params": [], "lr": 0.2}]
    plain = torch.optim.AdamW(groups)
    train(module, plain, range(2))
    optimizer = build_optimizer(module, {"lr": 0.1})
    load_optimizer_state_dict(optimizer, FORMS[form](module, plain))
    expected = {name: bits(plain.state[p]) for name, p in names.items()}
    assert kept_for(optimizer) == expected
    train(module, optimizer, [2])


@in_each_form
def test_B75_newly_trainable_parameters_start_afresh_on_purpose(
    form: str, caplog: pytest.LogCaptureFixture
) -> None:
    module = first_frozen()
    first = trained(module, {}, 3)
    saved = copy.deepcopy(FORMS[form](module, first))
    module.requires_grad_()
    resumed = build_optimizer(module, {})
    report = load_optimizer_state_dict(resumed, saved, missing="fresh")
    assert kept_for(resumed) == kept_for(first)
    assert report.fresh == ["0.weight", "0.bias"]
    (message,) = caplog.messages
    assert "0.weight" in message
    train(module, resumed, [3])
    assert resumed.state[module[0].weight]["step"] == 1
    assert resumed.state[module[2].weight]["step"] == 4


@in_each_form
def test_B75_newly_trainable_parameters_are_refused_by_name(form: str) -> None:
    module = first_frozen()
    saved = FORMS[form](module, trained(module, {}, 3))
    module.requires_grad_()
    assert refused_load(build_optimizer(module, {}), saved) == (
        "3 problems:\n"
        "  - the saved state has nothing for 0.weight\n"
        "  - the saved state has nothing for 0.bias\n"
        "  - to start these without state: missing='fresh'"
    )


@pytest.mark.parametrize("form", ["ours", "torch"])
def test_B75_the_state_of_frozen_parameters_is_left_out_and_listed(
    form: str, caplog: pytest.LogCaptureFixture
) -> None:
    module = layers()
    first = trained(module, {}, 3)
    saved = copy.deepcopy(FORMS[form](module, first))
    module[0].requires_grad_(False)
    resumed = build_optimizer(module, {})
    report = load_optimizer_state_dict(resumed, saved)
    assert report.dropped == ["0.weight", "0.bias"]
    assert kept_for(resumed) == {name: kept_for(first)[name] for name in HEAD}
    (message,) = caplog.messages
    assert "left 0.weight, 0.bias out, frozen now" in message
    assert "0.weight" in message
    before = bits_of(resumed)
    load_optimizer_state_dict(resumed, saved)
    assert bits_of(resumed) == before
    train(module, resumed, [3])
