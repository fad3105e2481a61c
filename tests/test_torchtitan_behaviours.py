"""What torchtitan's tests of its container pin holds for `OptimizersContainer`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from case_helpers import exact, train_once, values_of
from optim_hydra import OptimizersContainer, build_optimizer, build_optimizers
from optim_hydra.errors import WrongObjectError
from wrapped_models import three_layers

TWO_CLASSES = {"param_groups": [{"ndim": 2, "optimizer": "Muon"}]}
LINEAR = {"lr_scheduler_type": "linear", "total_training_steps": 10}


class Calling(OptimizersContainer):
    """A subclass with a step of its own, as torchtitan's for fault tolerance is."""

    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


class CallingTwice(Calling):
    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


class Mixin:
    def step(self, *args: Any, **kwargs: Any) -> Any:
        return super().step(*args, **kwargs)


class Mixed(Mixin, OptimizersContainer):
    pass


def two_parts() -> dict[str, nn.Module]:
    return {"actor": three_layers(), "critic": three_layers()}


def container_of(
    parts: dict[str, nn.Module], **fields: Any
) -> OptimizersContainer[Optimizer]:
    plain = {"optimizer": "SGD", "weight_decay": 0.0, "lr": 0.1, **fields}
    return build_optimizers(parts, {"actor": plain, "critic": {"lr": 0.01}})


def test_it_iterates_over_its_optimizers_which_have_names() -> None:
    container = container_of(two_parts())
    assert len(container) == 2
    assert container.names == ["actor", "critic"]
    assert [type(inner).__name__ for inner in container] == ["SGD", "AdamW"]
    assert list(container) == container.optimizers
    assert container["critic"] is container.optimizers[1]
    with pytest.raises(WrongObjectError) as caught:
        container["crtic"]
    assert str(caught.value) == (
        "no optimizer 'crtic' in here: did you mean critic? (there are actor, critic)"
    )


def test_parts_and_a_class_make_one_optimizer_each() -> None:
    stages = [nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)]
    container = OptimizersContainer(stages, SGD, {"lr": 0.1, "momentum": 0.9})
    assert [type(inner) for inner in container] == [SGD, SGD, SGD]
    assert set(values_of(container, "lr", "momentum").values()) == {(0.1, 0.9)}
    for inner, stage in zip(container, stages, strict=True):
        (group,) = inner.param_groups
        assert list(map(id, group["params"])) == list(map(id, stage.parameters()))


@pytest.mark.parametrize(
    "cls", [OptimizersContainer, Calling, CallingTwice, Mixed], ids=lambda c: c.__name__
)
def test_hooks_of_the_container_fire_once_a_step(cls: type[Any]) -> None:
    module = three_layers()
    container = cls([module], SGD, {"lr": 0.1})
    fired = []
    container.register_step_pre_hook(lambda *_: fired.append("before"))
    container.register_step_post_hook(lambda *_: fired.append("after"))
    train_once(container, module)
    assert fired == ["before", "after"]
    train_once(container, module)
    assert fired == ["before", "after"] * 2


def test_hooks_fire_once_after_a_step_that_failed() -> None:
    container = Calling([three_layers()], SGD, {"lr": 0.1})
    fired = []
    container.register_step_pre_hook(lambda *_: fired.append("before"))
    with pytest.raises(ZeroDivisionError):
        container.step(lambda: 1 / 0)
    container.step()
    assert fired == ["before", "before"]


def test_hooks_of_all_optimizers_fire_once_for_each() -> None:
    container = container_of(two_parts())
    names: list[str] = []
    handle = register_optimizer_step_post_hook(
        lambda optimizer, *_: names.append(type(optimizer).__name__)
    )
    container["critic"].register_step_pre_hook(lambda *_: names.append("inner hook"))
    container.step()
    handle.remove()
    assert names == ["SGD", "inner hook", "AdamW", "OptimizersContainer"]


def test_groups_are_live_after_an_inner_optimizer_loads() -> None:
    parts = two_parts()
    container = container_of(parts)
    train_once(container, *parts.values())
    state = copy.deepcopy(container["critic"].state_dict())
    state["param_groups"][0]["lr"] = 0.77
    container["critic"].load_state_dict(state)
    assert [group["lr"] for group in container.param_groups] == [0.1, 0.77]
    assert container.param_groups[1] is container["critic"].param_groups[0]
    container.param_groups[1]["lr"] = 0.5
    assert container["critic"].param_groups[0]["lr"] == 0.5
    weight = parts["critic"][0].weight
    assert container.state[weight] is container["critic"].state[weight]
    assert len(container.state) == 6


def test_a_group_is_added_to_the_optimizer_of_the_nodes_class() -> None:
    container = build_optimizer(three_layers(), TWO_CLASSES)
    added = nn.Parameter(torch.ones(2))
    container.add_param_group({"params": [("added", added)], "lr": 0.5})
    assert container["AdamW"].param_groups[1]["params"] == [added]
    assert values_of(container, "lr")["added"] == 0.5
    with pytest.raises(WrongObjectError) as caught:
        container_of(two_parts()).add_param_group({"params": [("added", added)]})
    assert str(caught.value) == (
        "the group could go to any of actor, critic: say which,"
        " container['actor'].add_param_group(group)"
    )


def test_a_parameter_that_another_optimizer_has_is_not_added_again() -> None:
    model = three_layers()
    container = build_optimizer(model, TWO_CLASSES)
    with pytest.raises(ValueError, match="is in this container already"):
        container.add_param_group({"params": [("0.weight", model[0].weight)]})
    assert len(values_of(container, "lr")) == 6


def test_an_added_group_follows_the_schedule_from_its_own_rate() -> None:
    parts = two_parts()
    container = container_of(parts, **LINEAR)
    added = nn.Parameter(torch.ones(2))
    container["actor"].add_param_group({"params": [("added", added)], "lr": 0.5})
    for _ in range(5):
        train_once(container, *parts.values())
    assert [g["lr"] for g in container.param_groups] == exact(0.05, 0.25, 0.01)
