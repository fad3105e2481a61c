"""Several modules in one checkpoint, as public bug reports met them.

Cases: B76.
"""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from case_helpers import Compose
from optim_hydra import (
    ConfigError,
    OptimizersContainer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_towers import refused, towers, trained_pair
from saved_training import (
    bits,
    bits_of,
    kept_for,
    refused_load,
    through_file,
    train,
    trained,
)

TWO_RATES = "actor:\n  optim: {lr: 1e-3}\ncritic:\n  optim: {lr: 1e-2}\n"


def test_B76_every_entry_carries_its_part(compose: Compose, tmp_path: Path) -> None:
    config = compose(yaml=TWO_RATES)
    _, container = trained_pair(config)
    saved = through_file(container.state_dict(), tmp_path)
    entries = [key for key in saved if key.startswith(("state.", "param_groups."))]
    alone = [optimizer_state_dict(inner) for inner in container]
    kept = [key for each in alone for key in each if "optim_hydra." not in key]
    assert len(entries) == len(kept)
    others = saved.keys() - set(entries)
    assert {key.split(".")[1] for key in entries} == {"actor", "critic"}
    assert {key.split(".")[0] for key in others} == {"optim_hydra", "lr_schedulers"}

    resumed = build_optimizers(towers(), config)
    resumed.load_state_dict(saved)
    averages = {
        name: kept_for(inner)["weight"]["exp_avg"]
        for name, inner in zip(resumed.names, resumed, strict=True)
    }
    assert averages["actor"] != averages["critic"]
    for name, average in averages.items():
        assert average == bits(saved[f"state.{name}.weight.exp_avg"])
        assert kept_for(resumed[name]) == kept_for(container[name])
    assert [group["lr"] for group in resumed.param_groups] == [1e-3, 1e-2]


def test_B76_one_part_is_loaded_alone(compose: Compose) -> None:
    config = compose(yaml=TWO_RATES)
    _, container = trained_pair(config)
    resumed = build_optimizers(towers(), config)
    before = bits_of(resumed["actor"])
    load_optimizer_state_dict(resumed["critic"], container.state_dict())
    assert kept_for(resumed["critic"]) == kept_for(container["critic"])
    assert bits_of(resumed["actor"]) == before


def test_B76_kin_one_part_is_saved_and_loaded_alone(compose: Compose) -> None:
    config = compose(yaml=TWO_RATES)
    _, container = trained_pair(config)
    resumed = build_optimizers(towers(), config)
    before = bits_of(resumed["actor"])
    saved = optimizer_state_dict(container["critic"])
    load_optimizer_state_dict(resumed["critic"], saved)
    assert kept_for(resumed["critic"]) == kept_for(container["critic"])
    assert bits_of(resumed["actor"]) == before


def test_B76_a_part_that_was_not_saved_is_named(compose: Compose) -> None:
    config = compose(yaml=TWO_RATES)
    parts = towers()
    actor = build_optimizers({"actor": parts["actor"]}, config)
    train(parts["actor"], actor, range(2))
    resumed = build_optimizers(towers(), config)
    assert "critic" in refused(resumed, actor.state_dict())
    assert refused_load(resumed, optimizer_state_dict(actor)) == (
        "4 problems:\n"
        "  - the saved state has no schedule for critic\n"
        "  - the saved state has nothing for critic.weight\n"
        "  - the saved state has nothing for critic.bias\n"
        "  - to start these without state: missing='fresh'"
    )


def test_B76_kin_a_part_that_is_no_longer_there_is_named(compose: Compose) -> None:
    config = compose(yaml=TWO_RATES)
    _, container = trained_pair(config)
    actor = build_optimizers({"actor": towers()["actor"]}, config)
    assert refused(actor, container.state_dict()) == (
        "3 problems:\n"
        "  - the saved state has critic.weight, the optimizer has not\n"
        "  - the saved state has critic.bias, the optimizer has not\n"
        "  - to leave removed layers out, leave their entries out of what is loaded, as"
        " in {k: v for k, v in saved.items() if '.critic.weight' not in k}"
    )


def test_B76_kin_equal_names_are_no_state_to_save() -> None:
    parts = {name: trained(part, {}) for name, part in towers().items()}
    container = OptimizersContainer.of(parts)
    with pytest.raises(ConfigError, match="weight"):
        container.state_dict()


def test_B76_kin_unnamed_parts_of_equal_names_are_told_apart() -> None:
    parts = list(towers().values())
    container = OptimizersContainer(parts, torch.optim.AdamW, {"lr": 0.1})
    train(nn.Sequential(parts[0], nn.Linear(2, 4), parts[1]), container, range(2))
    saved = copy.deepcopy(container.state_dict())
    twins = list(towers().values())
    resumed = OptimizersContainer(twins, torch.optim.AdamW, {"lr": 0.1})
    resumed.load_state_dict(saved)
    for ours, theirs in zip(resumed, container, strict=True):
        assert kept_for(ours) == kept_for(theirs)
