"""What torchtitan's tests of its parameter groups pin holds for `build_optimizer`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from case_helpers import (
    Compose,
    exact,
    names_by,
    offer,
    refused,
    train_once,
    values_of,
)
from group_models import gpt, moe
from optim_hydra import build_lr_scheduler, build_optimizer
from wrapped_models import WRAPPERS, three_layers

NAMES = [name for name, _ in three_layers().named_parameters()]


def test_a_pattern_sets_weight_decay_to_zero() -> None:
    config = {
        "weight_decay": 0.1,
        "param_groups": [{"regex": r"bias|^1\.", "weight_decay": 0.0}],
    }
    optimizer = build_optimizer(three_layers(), config)
    decayed = ["0.weight", "2.weight"]
    assert names_by(optimizer, "weight_decay") == {
        0.1: decayed,
        0.0: [name for name in NAMES if name not in decayed],
    }


def test_a_pattern_overrides_rate_and_betas() -> None:
    rule = {"pattern": "2.*", "lr": 1e-5, "betas": [0.8, 0.99]}
    optimizer = build_optimizer(three_layers(), {"param_groups": [rule]})
    assert names_by(optimizer, "lr", "betas") == {
        (1e-3, (0.9, 0.999)): NAMES[:4],
        (1e-5, (0.8, 0.99)): NAMES[4:],
    }


def test_the_first_match_wins_whatever_the_later_ones_say() -> None:
    rules = [{"regex": "weight", "lr": 0.1}, {"regex": ".*", "lr": 0.2}]
    found = values_of(build_optimizer(three_layers(), {"param_groups": rules}), "lr")
    assert found == {name: 0.1 if "weight" in name else 0.2 for name in NAMES}


def test_zero_matches_are_an_error() -> None:
    rule = {"regex": "does_not_exist", "lr": 0.1}
    told = str(refused(three_layers(), {"param_groups": [rule]}))
    assert told.startswith("regex 'does_not_exist' matches no parameter")
    assert told.endswith("@ param_groups[0]")


@pytest.mark.parametrize("model", [gpt, moe, three_layers])
def test_every_parameter_is_covered_once_and_the_rest_has_the_nodes_values(
    model: Any,
) -> None:
    rules = [
        {"role": "hidden", "ndim": 2, "optimizer": "Muon", "lr": 0.02},
        {"role": "bias", "optimizer": "SGD", "lr": 0.1},
    ]
    module = model()
    container = build_optimizer(module, {"lr": 1e-3, "param_groups": rules})
    found = values_of(container, "lr")
    assert found.keys() == {name for name, _ in module.named_parameters()}
    assert set(found.values()) == {1e-3, 0.02, 0.1}
    assert values_of(container["AdamW"], "lr").keys() == {
        name for name, lr in found.items() if lr == 1e-3
    }


def test_a_mixed_set_of_classes_is_one_optimizer_and_trains() -> None:
    model = three_layers()
    rules = [
        {"pattern": "0.weight", "optimizer": "Muon"},
        {"pattern": "2.*", "optimizer": "SGD", "weight_decay": 0.0},
    ]
    container = build_optimizer(model, {"param_groups": rules})
    assert isinstance(container, torch.optim.Optimizer)
    assert container.names == ["AdamW", "Muon", "SGD"]
    before = [parameter.detach().clone() for parameter in model.parameters()]
    train_once(container, model)
    assert not any(map(torch.equal, before, model.parameters()))


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD", "NAdam", "Adafactor"])
def test_no_name_leaks_into_a_group_beyond_those_that_torch_keeps(
    optimizer: str,
) -> None:
    cls = getattr(torch.optim, optimizer)
    own = cls(list(three_layers().named_parameters()), lr=1e-3).param_groups[0]
    config = {
        "optimizer": optimizer,
        "no_decay": ["bias"],
        "layer_decay": {"factor": 0.5, "layers": ["0.*", "1.*", "2.*"]},
        "param_groups": [{"regex": "^1", "lr_mult": 0.5, "lr_scheduler_type": "wsd"}],
    }
    built = build_optimizer(three_layers(), config)
    assert len(built.param_groups) > 3
    saved = built.state_dict()["param_groups"]
    for group in (*built.param_groups, *saved):
        assert group.keys() == own.keys()


def test_names_carry_no_segment_of_activation_checkpointing() -> None:
    model = WRAPPERS["checkpointed_child"](three_layers())
    raw = [name for name, _ in model.named_parameters()]
    assert list(values_of(build_optimizer(model, {}), "lr")) == NAMES != raw


def test_one_schedule_multiplies_different_base_rates() -> None:
    config = {
        "lr": 1e-3,
        "lr_scheduler_type": "linear",
        "lr_warmup_steps": 2,
        "total_training_steps": 6,
        "param_groups": [
            {"pattern": "0.*", "lr": 1e-2},
            {"pattern": "2.weight", "optimizer": "Muon", "lr_mult": 20},
        ],
    }
    model = three_layers()
    optimizer = build_optimizer(model, config)
    scheduler = build_lr_scheduler(optimizer, config)
    for factor in (0.0, 0.5, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0):
        expected = exact(1e-3 * factor, 1e-2 * factor, 2e-2 * factor)
        assert scheduler.get_last_lr() == expected
        assert [group["lr"] for group in optimizer.param_groups] == expected
        train_once(optimizer, model)
        scheduler.step()


def test_a_rule_has_a_schedule_of_its_own() -> None:
    config = {
        "lr": 1.0,
        "lr_scheduler_type": "cosine",
        "min_lr_ratio": 0.1,
        "lr_warmup_steps": 2,
        "total_training_steps": 6,
        "param_groups": [
            {"pattern": "0.*", "lr_scheduler_type": "constant", "lr_warmup_steps": 0},
            {"pattern": "1.*", "lr_scheduler_type": "linear", "min_lr_ratio": 0.0},
        ],
    }
    optimizer = build_optimizer(three_layers(), config)
    scheduler = build_lr_scheduler(optimizer, config)
    seen = []
    for _ in range(7):
        seen.append(scheduler.get_last_lr())
        optimizer.step()
        scheduler.step()
    rest, constant, linear = map(list, zip(*seen, strict=True))
    assert constant == [1.0] * 7
    assert linear == exact(0.0, 0.5, 1.0, 0.75, 0.5, 0.25, 0.0)
    assert rest[::2] == exact(0.0, 1.0, 0.55, 0.1)


def test_a_class_of_somebody_elses_is_chosen_by_a_rule(
    monkeypatch: pytest.MonkeyPatch, compose: Compose
) -> None:
    class External(torch.optim.SGD):
        def __init__(self, params: Any, lr: float = 1e-2, power: float = 1.0) -> None:
            super().__init__(params, lr=lr)
            self.defaults["power"] = power
            for group in self.param_groups:
                group.setdefault("power", power)

    offer(monkeypatch, "external_impl", External=External)
    rule = (
        "{pattern: '0.*', optimizer_impl: external_impl, optimizer: External,"
        " override_optimizer_config: {power: 2}}"
    )
    config = compose(f"actor.optim.param_groups=[{rule}]")
    container = build_optimizer(three_layers(), config.actor.optim)
    assert type(container["External"]) is External
    assert values_of(container["External"], "power") == {"0.weight": 2.0, "0.bias": 2.0}


def test_a_tensor_rate_of_a_group_stays_the_same_tensor() -> None:
    rate = torch.tensor(1e-2)
    model = nn.Linear(4, 2)
    groups = [{"params": [model.weight], "lr": rate}, {"params": [model.bias]}]
    schedule = {"lr_scheduler_type": "linear", "total_training_steps": 4}
    optimizer = build_optimizer(groups, {"lr": 1e-3})
    scheduler = build_lr_scheduler(optimizer, {"lr": 1e-3, **schedule})
    train_once(optimizer, model)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert float(rate) == pytest.approx(7.5e-3)
