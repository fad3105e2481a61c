"""A container is saved and loaded by torch.distributed.checkpoint as it is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
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
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from saved_training import bits

CONFIG = {
    "actor": {
        "optim": {
            "lr": 1e-3,
            "lr_scheduler_type": "cosine",
            "total_training_steps": 100,
            "param_groups": [{"pattern": "0.weight", "optimizer": "Muon"}],
        }
    },
    "critic": {"optim": {"lr": 1e-2}},
}
pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled, unavailable or uninitialized:UserWarning"
)


def through_pickle(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def modules() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    actor = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    return {"actor": actor, "critic": nn.Linear(4, 2)}


def step(parts: dict[str, nn.Module], container: OptimizersContainer) -> None:
    container.zero_grad()
    for part in parts.values():
        part(torch.ones(3, 4)).square().sum().backward()
    container.step()


def test_an_untrained_container_is_loaded_and_goes_on_bit_for_bit(
    tmp_path: Path,
) -> None:
    parts = modules()
    container = build_optimizers(parts, CONFIG)
    for _ in range(3):
        step(parts, container)
    dcp.save({"optimizer": container}, checkpoint_id=tmp_path)

    twins = copy.deepcopy(parts)
    resumed = build_optimizers(twins, CONFIG)
    before = [p.clone() for part in twins.values() for p in part.parameters()]
    dcp.load({"optimizer": resumed}, checkpoint_id=tmp_path)
    after = [p for part in twins.values() for p in part.parameters()]
    assert all(map(torch.equal, before, after))
    for _ in range(2):
        step(parts, container)
        step(twins, resumed)
    ours = [p for part in parts.values() for p in part.parameters()]
    assert all(map(torch.equal, ours, after))
    assert [g["lr"] for g in resumed.param_groups] == [
        g["lr"] for g in container.param_groups
    ]


def test_a_class_without_a_template_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = {"optimizer": "LBFGS"}
    optimizer = build_optimizer(nn.Linear(3, 2), config, provides=["closure"])
    saved = optimizer_state_dict(optimizer, templates=True)
    assert not any(key.startswith("state.") for key in saved)
    assert caplog.messages == [
        "LBFGS has no state to load into, since its step fails without a loss"
        " (what it keeps grows with what the closure returns):"
        " torch.distributed.checkpoint restores nothing of it before its first step"
    ]


def test_sparse_adam_is_loaded_before_its_first_step(tmp_path: Path) -> None:
    config = {"words": {"optim": {"optimizer": "SparseAdam", "lr": 0.1}}}
    tables = [nn.Embedding(10, 4, sparse=True) for _ in range(2)]

    def built(table: nn.Module) -> OptimizersContainer:
        return build_optimizers({"words": table}, config, provides=["sparse_gradients"])

    def look_up(table: nn.Module, optimizer: torch.optim.Optimizer, word: int) -> None:
        optimizer.zero_grad()
        table(torch.tensor([word, 3])).square().sum().backward()
        optimizer.step()

    container = built(tables[0])
    for word in (1, 2):
        look_up(tables[0], container, word)
    dcp.save({"optim": container}, checkpoint_id=tmp_path)
    tables[1].load_state_dict(tables[0].state_dict())
    resumed = built(tables[1])
    dcp.load({"optim": resumed}, checkpoint_id=tmp_path)
    assert bits(resumed.state_dict()) == bits(container.state_dict())
    look_up(tables[0], container, 1)
    look_up(tables[1], resumed, 1)
    assert bits(tables[1].weight) == bits(tables[0].weight)


def test_what_an_untrained_container_saves_counts_as_no_state() -> None:
    saved = build_optimizers(modules(), CONFIG).state_dict()
    assert any(key.startswith("state.") for key in saved)
    resumed = build_optimizers(modules(), CONFIG)
    resumed.load_state_dict(saved)
    assert len(resumed.state) == 0


def test_what_has_not_stepped_yet_starts_without_state_beside_what_has(
    tmp_path: Path,
) -> None:
    parts = modules()
    container = build_optimizers(parts, CONFIG)
    parts["critic"](torch.ones(3, 4)).square().sum().backward()
    container["critic"].step()
    dcp.save({"optimizer": container}, checkpoint_id=tmp_path)

    twins = copy.deepcopy(parts)
    resumed = build_optimizers(twins, CONFIG)
    dcp.load({"optimizer": resumed}, checkpoint_id=tmp_path)
    kept = {id(parameter) for parameter, state in resumed.state.items() if state}
    assert kept == {id(parameter) for parameter in twins["critic"].parameters()}
    for _ in range(2):
        step(parts, container)
        step(twins, resumed)
    for name, part in parts.items():
        assert all(map(torch.equal, part.parameters(), twins[name].parameters()))


def scheduled(make, lr: float, num_groups: int = 1) -> OptimizersContainer:
    torch.manual_seed(0)
    named = list(nn.Linear(3, 2).named_parameters())
    size = len(named) // num_groups
    groups = [{"params": named[i : i + size]} for i in range(0, len(named), size)]
    optimizer = torch.optim.AdamW(groups, lr=lr)
    schedulers = {"part": make(optimizer)}
    return OptimizersContainer.of({"part": optimizer}, lr_schedulers=schedulers)


def rates(container: OptimizersContainer, num_steps: int) -> list[float]:
    found = []
    for _ in range(num_steps):
        for group in container.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        container.step()
        found.append(container.param_groups[-1]["lr"])
    return found


SCHEDULERS = {
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 1 / (1 + n)),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "sequential": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [
            torch.optim.lr_scheduler.ConstantLR(o),
            torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
        ],
        [2],
    ),
}


@pytest.mark.parametrize("num_groups", [1, 2])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_schedule_of_torch_goes_on_from_this_runs_rate(
    name: str, num_groups: int
) -> None:
    container = scheduled(SCHEDULERS[name], 0.1)
    rates(container, 1)
    saved = copy.deepcopy(container.state_dict())
    resumed = scheduled(SCHEDULERS[name], 0.2, num_groups)
    resumed.load_state_dict(saved)
    expected = rates(scheduled(SCHEDULERS[name], 0.2), 4)
    assert resumed.param_groups[0]["lr"] == pytest.approx(expected[0])
    assert rates(resumed, 3) == pytest.approx(expected[1:])


def test_another_schedule_of_torch_changes_nothing() -> None:
    container = scheduled(SCHEDULERS["cosine"], 0.1)
    rates(container, 1)
    resumed = scheduled(SCHEDULERS["lambda"], 0.1)
    with pytest.raises(StateError) as caught:
        resumed.load_state_dict(container.state_dict())
    assert str(caught.value) == "the saved schedule of part is none of LambdaLR"
    assert not resumed.optimizers[0].state


@pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle])
def test_a_copy_of_a_container_resumes_as_its_nodes_say(
    copied: Callable[[Any], Any],
) -> None:
    config = {"actor": {"lr": 0.1}, "critic": {"lr": 0.2}}
    parts = {name: nn.Linear(4, 2) for name in config}
    saved = copy.deepcopy(build_optimizers(parts, config).state_dict())
    now = {
        "actor": {"lr": 0.3, "on_resume": "checkpoint"},
        "critic": {"lr": 0.4, "on_resume": "config"},
    }
    twin = copied(copied(build_optimizers(parts, now)))
    twin.load_state_dict(saved)
    assert [group["lr"] for group in twin.param_groups] == [0.1, 0.4]
    strict = {name: {**node, "on_resume": "strict"} for name, node in config.items()}
    strict["critic"]["lr"] = 0.5
    twin = copied(build_optimizers(parts, strict))
    with pytest.raises(StateError, match=r"lr: saved 0\.2, now 0\.5"):
        twin.load_state_dict(saved)
