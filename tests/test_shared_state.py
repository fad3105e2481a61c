"""What an optimizer keeps for no parameter, or in objects, survives a restart too."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn

from optim_hydra import (
    OptimizersContainer,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from saved_training import assert_resumes, bits, layers, through_file, train

no_process_group = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled, unavailable or uninitialized:UserWarning"
)


def of(optimizer: str, /, **extra: Any) -> dict[str, Any]:
    return {"optimizer_impl": "pytorch_optimizer", "optimizer": optimizer, **extra}


@pytest.mark.parametrize(
    "name", ["MADGRAD", "StableSPAM", "SPAM", "EmoNavi", "SCION", "Amos", "Nero"]
)
def test_a_class_with_state_of_its_own_goes_on(name: str, tmp_path: Path) -> None:
    assert_resumes(layers, of(name), tmp_path)


def test_it_is_saved_by_class_and_key() -> None:
    module = layers()
    optimizer = build_optimizer(module, of("MADGRAD"))
    train(module, optimizer, range(3))
    saved = optimizer_state_dict(optimizer)
    [entry] = [key for key in saved if key.startswith("shared.")]
    assert entry == "shared.pytorch_optimizer.optimizer.madgrad.MADGRAD.k"
    assert saved[entry].tolist() == [3]


def test_it_goes_into_other_groups_and_into_two_optimizers(tmp_path: Path) -> None:
    module = layers()
    optimizer = build_optimizer(module, of("MADGRAD"))
    train(module, optimizer, range(3))
    saved = through_file(optimizer_state_dict(optimizer), tmp_path)
    rules = [{"ndim": 1, "weight_decay": 0.0}]
    regrouped = build_optimizer(layers(), of("MADGRAD", param_groups=rules))
    load_optimizer_state_dict(regrouped, saved)
    assert regrouped.state["k"].tolist() == [3]  # type: ignore[index]
    assert regrouped.state["k"] is not saved  # type: ignore[index]


def test_state_from_before_the_first_step_takes_it_away_again() -> None:
    module = layers()
    optimizer = build_optimizer(module, of("MADGRAD"))
    untrained = optimizer_state_dict(optimizer)
    train(module, optimizer, range(2))
    load_optimizer_state_dict(optimizer, untrained)
    assert dict(optimizer.state) == {}


def test_two_modules_have_their_own(tmp_path: Path) -> None:
    parts = {"actor": layers(), "critic": layers()}
    config = {"actor": {"optim": of("MADGRAD")}, "critic": {"optim": of("MADGRAD")}}
    container = build_optimizers(parts, config)
    train(parts["actor"], container["actor"], range(3))
    train(parts["critic"], container["critic"], range(1))
    saved = through_file(container.state_dict(), tmp_path)
    resumed = build_optimizers({"actor": layers(), "critic": layers()}, config)
    resumed.load_state_dict(saved)
    counts = [inner.state["k"].item() for inner in resumed]  # type: ignore[index]
    assert counts == [3, 1]
    load_optimizer_state_dict(resumed["actor"], saved)


@no_process_group
def test_distributed_checkpoint_loads_it_before_the_first_step(tmp_path: Path) -> None:
    module = layers()
    optimizer = build_optimizer(module, of("MADGRAD"))
    train(module, optimizer, range(3))
    dcp.save({"optim": optimizer_state_dict(optimizer)}, checkpoint_id=tmp_path)
    resumed = build_optimizer(layers(), of("MADGRAD"))
    state = {"optim": optimizer_state_dict(resumed, templates=True)}
    dcp.load(state, checkpoint_id=tmp_path)
    load_optimizer_state_dict(resumed, state["optim"])
    assert resumed.state["k"].tolist() == [3]  # type: ignore[index]


def test_the_form_of_torch_has_it_without_a_class() -> None:
    module = layers()
    for name in ("MADGRAD", "StableSPAM"):
        optimizer = build_optimizer(module, of(name))
        train(module, optimizer, range(3))
        resumed = build_optimizer(layers(), of(name))
        load_optimizer_state_dict(resumed, copy.deepcopy(optimizer.state_dict()))
        ours, theirs = map(optimizer_state_dict, (resumed, optimizer))
        assert bits(ours) == bits(theirs)


def test_a_mode_is_restored(tmp_path: Path) -> None:
    inner = {"optimizer": "SGD"}
    config = of("ScheduleFreeWrapper", override_optimizer_config={"optimizer": inner})
    module = layers()
    optimizer = build_optimizer(module, config)
    train(module, optimizer, range(3))
    optimizer.eval()  # type: ignore[attr-defined]
    saved = through_file(optimizer_state_dict(optimizer), tmp_path)
    resumed = build_optimizer(layers(), config)
    load_optimizer_state_dict(resumed, saved)
    assert resumed.train_mode is False  # type: ignore[attr-defined]


def test_a_tensor_in_a_group_is_copied_for_each_group() -> None:
    module = layers()
    optimizer = build_optimizer(module, of("ASGD"))
    train(module, optimizer, range(2))
    saved = optimizer_state_dict(optimizer)
    rules = [{"ndim": 1, "weight_decay": 0.0}]
    resumed = build_optimizer(layers(), of("ASGD", param_groups=rules))
    load_optimizer_state_dict(resumed, saved)
    groups = [*optimizer.param_groups, *resumed.param_groups]
    held = [group["prev_param_norm"] for group in groups]
    assert len({id(tensor) for tensor in held}) == len(held) == 3
    assert len({tensor.item() for tensor in held}) == 1


def test_objects_are_named_with_what_to_type(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module = layers()
    optimizer = build_optimizer(module, of("AdaShift"))
    train(module, optimizer, range(2))
    with caplog.at_level(logging.WARNING):
        saved = optimizer_state_dict(optimizer)
    [message] = [r.message for r in caplog.records if "object" in r.message]
    names = [key for key in saved if key.endswith("grad_queue")]
    assert message == (
        f"{names[0]} is kept in an object: torch.load(weights_only=True) reads the file"
        " only after torch.serialization.add_safe_globals([deque])"
    )


@pytest.mark.parametrize("name", ["Lion", "AdaBelief"])
def test_wrong_shapes_of_a_class_that_torch_does_not_have_are_found(name: str) -> None:
    module = layers()
    optimizer = build_optimizer(module, of(name))
    train(module, optimizer, range(2))
    saved = copy.deepcopy(optimizer.state_dict())
    first = next(iter(saved["state"]))
    saved["state"][first]["exp_avg"] = torch.zeros(7, 7)
    resumed = build_optimizer(layers(), of(name))
    shape = tuple(next(module.parameters()).shape)
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(resumed, saved)
    assert str(caught.value) == (
        f"exp_avg of 0.weight was saved with the shape (7, 7), where {shape} is due"
    )


def test_factored_state_is_matched_by_order() -> None:
    module = layers()
    theirs = torch.optim.Adafactor(module.parameters())
    train(module, theirs, range(2))
    resumed = build_optimizer(layers(), {"optimizer": "Adafactor"})
    with pytest.warns(UserWarning, match="matched by order and shape"):
        load_optimizer_state_dict(resumed, copy.deepcopy(theirs.state_dict()))
    kept = [bits(theirs.state[p]) for p in module.parameters()]
    assert [bits(state) for state in resumed.state.values()] == kept


def test_the_hooks_of_a_container_see_its_state() -> None:
    seen = []
    container = OptimizersContainer([nn.Linear(2, 2)], torch.optim.SGD, {"lr": 0.1})
    container.register_state_dict_pre_hook(lambda _: seen.append("before saving"))
    container.register_state_dict_post_hook(lambda _, state: {**state, "run": "a"})
    container.register_load_state_dict_pre_hook(
        lambda _, state: {**state, "param_groups.weight.lr": 0.3}
    )
    container.register_load_state_dict_post_hook(lambda _: seen.append("after loading"))
    state = container.state_dict()
    assert state["run"] == "a"
    container.load_state_dict(state)
    assert seen == ["before saving", "after loading"]


def test_a_module_that_is_new_starts_its_schedule_where_asked_to() -> None:
    schedule = {"lr_scheduler_type": "cosine", "total_training_steps": 10}
    config = {"actor": {"optim": schedule}, "critic": {"optim": schedule}}
    parts = {"actor": layers()}
    container = build_optimizers(parts, {"actor": config["actor"]})
    train(parts["actor"], container, range(4))
    resumed = build_optimizers({"actor": layers(), "critic": layers()}, config)
    report = load_optimizer_state_dict(
        resumed, copy.deepcopy(container.state_dict()), missing="fresh"
    )
    assert all(name.startswith("critic.") for name in report.fresh)
    steps = {name: s.last_epoch for name, s in resumed.lr_schedulers.items()}
    assert steps == {"actor": 4, "critic": 0}


@pytest.mark.parametrize("name", ["Adan", "DAdaptSGD", "Kron"])
def test_making_templates_draws_no_random_numbers(name: str) -> None:
    optimizer = build_optimizer(layers(), of(name))
    torch.manual_seed(0)
    saved = optimizer_state_dict(optimizer, templates=True)
    assert any(key.startswith("state.") for key in saved)
    assert not optimizer.state
    drawn = torch.rand(3)
    torch.manual_seed(0)
    assert drawn.tolist() == torch.rand(3).tolist()


def test_shared_state_of_another_kind_changes_nothing() -> None:
    module = layers()
    optimizer = build_optimizer(module, of("MADGRAD"))
    train(module, optimizer, range(2))
    saved = optimizer_state_dict(optimizer)
    [entry] = [key for key in saved if key.startswith("shared.")]
    before = bits(copy.deepcopy(optimizer_state_dict(optimizer)))
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(optimizer, {**saved, entry: "three"})
    assert str(caught.value) == "the saved k is of type str, where Tensor is due"
    assert bits(optimizer_state_dict(optimizer)) == before


def test_what_a_class_does_not_know_of_is_left_out_by_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    optimizer = build_optimizer(layers(), {})
    with caplog.at_level(logging.WARNING):
        load_optimizer_state_dict(optimizer, {**optimizer.state_dict(), "epoch": 3})
    assert "AdamW has no 'epoch': it was left out" in caplog.messages
    assert not optimizer.state


def test_state_that_is_loaded_in_inference_mode_can_be_updated() -> None:
    module = layers()
    optimizer = build_optimizer(module, {})
    train(module, optimizer, range(2))
    resumed = build_optimizer(module, {})
    with torch.inference_mode():
        load_optimizer_state_dict(resumed, optimizer_state_dict(optimizer))
    train(module, resumed, range(2))


def test_a_schedule_that_can_not_be_used_changes_nothing() -> None:
    schedule = {"lr_scheduler_type": "cosine", "total_training_steps": 10}
    config = {"actor": {"optim": {**schedule, "on_resume": "checkpoint"}}}
    container = build_optimizers({"actor": layers()}, config)
    saved = container.state_dict()
    before = bits(copy.deepcopy(saved))
    with pytest.raises(StateError) as caught:
        container.load_state_dict(
            {**saved, "lr_schedulers.actor.total_training_steps": "ten"}
        )
    assert "the saved schedule can't be used: " in str(caught.value)
    assert bits(container.state_dict()) == before


def test_a_submodule_takes_what_the_whole_kept_for_no_parameter() -> None:
    whole = nn.ModuleDict({"encoder": layers()})
    optimizer = build_optimizer(whole, of("MADGRAD"))
    train(whole["encoder"], optimizer, range(3))
    saved = copy.deepcopy(optimizer_state_dict(optimizer))
    alone = build_optimizer(layers(), of("MADGRAD"))
    load_optimizer_state_dict(alone, saved)
    assert alone.state["k"].tolist() == [3]  # type: ignore[index]
    entry = "shared.pytorch_optimizer.optimizer.madgrad.MADGRAD.k"
    del saved[entry]
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(optimizer, saved)
    assert str(caught.value) == f"the saved state lacks {entry}"


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        (
            "state.0.weight.exp_avg",
            1.0,
            "exp_avg of 0.weight is of type float, where a tensor is due",
        ),
        (
            "state.0.weight.step",
            None,
            "step of 0.weight is of type NoneType, where a tensor is due",
        ),
    ],
)
def test_what_is_no_tensor_is_not_taken_for_one(
    entry: str, value: Any, message: str
) -> None:
    module = layers()
    optimizer = build_optimizer(module, {})
    train(module, optimizer, range(2))
    saved = {**optimizer_state_dict(optimizer), entry: value}
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(optimizer, saved)
    assert str(caught.value) == message


def two_alike() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


def test_state_without_names_follows_the_module_and_not_the_groups() -> None:
    module = two_alike()
    theirs = torch.optim.AdamW(module.parameters())
    train(module, theirs, range(2))
    rules = [{"pattern": "0.*", "lr": 1e-4}]
    resumed = build_optimizer(module, {"param_groups": rules})
    with pytest.warns(UserWarning, match="matched by order and shape"):
        load_optimizer_state_dict(resumed, copy.deepcopy(theirs.state_dict()))
    for parameter in module.parameters():
        assert bits(resumed.state[parameter]) == bits(theirs.state[parameter])


def test_state_without_names_of_other_groups_is_not_guessed_at() -> None:
    module = two_alike()
    first, *others = module.parameters()
    theirs = torch.optim.AdamW([{"params": [first]}, {"params": others}])
    train(module, theirs, range(2))
    resumed = build_optimizer(module, {"no_decay": ["bias"]})
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(resumed, theirs.state_dict())
    assert str(caught.value) == (
        "the saved state has no names and groups of 1, 3 parameters, the optimizer of"
        " 2, 2: load it into the grouping that it was saved with, save that by"
        " optimizer_state_dict, and load this into the new one"
    )
    assert not resumed.state


def test_adamw_stays_adamw_with_the_state_of_adam() -> None:
    module = layers()
    theirs = torch.optim.Adam(module.named_parameters(), weight_decay=0.01)
    train(module, theirs, range(2))
    resumed = build_optimizer(layers(), {})
    load_optimizer_state_dict(resumed, copy.deepcopy(theirs.state_dict()))
    assert resumed.param_groups[0]["decoupled_weight_decay"] is True
