"""Templates to load into have all that a first step would add, and count as nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.optim import Optimizer

from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from saved_training import bits_of, layers, train, trained

pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled, unavailable or uninitialized:UserWarning"
)


@pytest.mark.parametrize(
    ("impl", "optimizer", "extra"),
    [
        ("torchao.optim", "AdamW8bit", {}),
        ("pytorch_optimizer", "Lookahead", {"optimizer": "AdamW"}),
        ("pytorch_optimizer", "SOAP", {}),
    ],
)
def test_a_template_has_what_a_class_keeps_beside_its_groups(
    impl: str, optimizer: str, extra: dict[str, str], monkeypatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    config = {"optimizer_impl": impl, "optimizer": optimizer}
    module = nn.Linear(4, 2)
    built = build_optimizer(module, {**config, "override_optimizer_config": extra})
    before = [parameter.clone() for parameter in module.parameters()]
    template = optimizer_state_dict(built, templates=True)
    assert all(map(torch.equal, before, module.parameters()))
    untrained = optimizer_state_dict(built)
    assert untrained.keys() < template.keys()
    module(torch.ones(3, 4)).sum().backward()
    built.step()
    assert optimizer_state_dict(built).keys() == template.keys()


def test_a_schedule_does_not_let_a_template_step_the_optimizer() -> None:
    module = nn.Linear(4, 2)
    config = {"lr_scheduler_type": "constant"}
    optimizer = build_optimizer(module, config)
    scheduler = build_lr_scheduler(optimizer, config)
    before = [parameter.clone() for parameter in module.parameters()]
    assert any(
        k.startswith("state.") for k in optimizer_state_dict(optimizer, templates=True)
    )
    assert all(map(torch.equal, before, module.parameters()))
    assert len(optimizer.state) == 0
    assert scheduler.last_epoch == 0


@pytest.mark.parametrize("optimizer", ["Lamb", "SOAP", "AdaBelief"])
def test_a_counter_in_the_groups_is_loaded_before_the_first_step(
    optimizer: str, tmp_path: Path
) -> None:
    config = {"optimizer_impl": "pytorch_optimizer", "optimizer": optimizer}
    module, twin = nn.Linear(4, 2), nn.Linear(4, 2)
    first = build_optimizer(module, config)
    for _ in range(3):
        module(torch.ones(3, 4)).square().sum().backward()
        first.step()
    dcp.save(optimizer_state_dict(first), checkpoint_id=tmp_path)

    resumed = build_optimizer(twin, config)
    state = optimizer_state_dict(resumed, templates=True)
    dcp.load(state, checkpoint_id=tmp_path)
    load_optimizer_state_dict(resumed, state)
    assert [group["step"] for group in resumed.param_groups] == [3]
    untrained = build_optimizer(twin, config)
    nothing = optimizer_state_dict(untrained, templates=True)
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(untrained, nothing)
    assert str(caught.value) == (
        "this is no saved optimizer state (nothing was loaded into what templates=True"
        " made; it is not for saving): give what optimizer_state_dict(optimizer),"
        " optimizer.state_dict() or torch.distributed.checkpoint made"
    )
    assert "step" not in untrained.param_groups[0]


def test_a_template_that_nothing_was_loaded_into_is_no_state(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    saved = build_optimizer(module[:1], {})
    module[0](torch.ones(3, 4)).square().sum().backward()
    saved.step()
    dcp.save(optimizer_state_dict(saved), checkpoint_id=tmp_path)

    longer = build_optimizer(module, {})
    state = optimizer_state_dict(longer, templates=True)
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    dcp.load(state, checkpoint_id=tmp_path, planner=planner)
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(longer, state)
    assert str(caught.value) == (
        "3 problems:\n"
        "  - the saved state has nothing for 1.weight\n"
        "  - the saved state has nothing for 1.bias\n"
        "  - to start these without state: missing='fresh'"
    )
    assert len(longer.state) == 0
    report = load_optimizer_state_dict(longer, state, missing="fresh")
    assert report.fresh == ["1.weight", "1.bias"]
    assert {id(p) for p in longer.state} == {id(p) for p in module[0].parameters()}


def test_what_is_loaded_into_is_no_state_of_a_trained_optimizer() -> None:
    module = nn.Linear(4, 2)
    optimizer = build_optimizer(module, {})
    module(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    before = bits_of(optimizer)
    for value in optimizer_state_dict(optimizer, templates=True).values():
        if isinstance(value, torch.Tensor):
            value.fill_(9.0)
    assert bits_of(optimizer) == before


@pytest.mark.filterwarnings("ignore:the saved schedule differs, this run's is used")
@pytest.mark.parametrize("kind", ["optimizer", "container"])
def test_a_tensor_lr_stays_this_runs_and_the_difference_is_told(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    module = nn.Linear(4, 2)
    torchao = {"optimizer_impl": "torchao.optim", "optimizer": "_AdamW"}

    def built(lr: float) -> Optimizer:
        config = {**torchao, "lr": lr}
        if kind == "optimizer":
            return build_optimizer(module, config)
        return build_optimizers({"actor": module}, {"actor": config})

    first, resumed = built(0.5), built(0.25)
    module(torch.ones(3, 4)).sum().backward()
    first.step()
    saved = first if kind == "container" else optimizer_state_dict(first)
    dcp.save({"optimizer": saved}, checkpoint_id=tmp_path)
    if kind == "container":
        dcp.load({"optimizer": resumed}, checkpoint_id=tmp_path)
    else:
        state = {"optimizer": optimizer_state_dict(resumed, templates=True)}
        dcp.load(state, checkpoint_id=tmp_path)
        load_optimizer_state_dict(resumed, state["optimizer"])
    assert [float(group["lr"]) for group in resumed.param_groups] == [0.25]
    assert "\n  lr: saved 0.5, now 0.25 (" in caplog.text


def test_new_layers_start_without_where_a_checkpoint_lacks_them(
    tmp_path: Path,
) -> None:
    old = layers()
    dcp.save(optimizer_state_dict(trained(old, {})), checkpoint_id=tmp_path)
    new = nn.Sequential(*old, nn.Linear(2, 3))
    resumed = build_optimizer(new, {})
    state = optimizer_state_dict(resumed, templates=True)
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    dcp.load(state, checkpoint_id=tmp_path, planner=planner)
    report = load_optimizer_state_dict(resumed, state, missing="fresh")
    assert report.num_restored == 6
    assert report.fresh == ["3.weight", "3.bias"]
    train(new, resumed, range(3, 5))
