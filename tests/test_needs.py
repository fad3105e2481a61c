"""What classes need is told by their shape or the table, and asked for by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from case_helpers import offer, refused
from optim_hydra import build_optimizer, register_builder
from optim_hydra.need_kinds import Need, Want
from optim_hydra.needs import ignored_by, need_of
from optim_hydra.needs_table import NEEDS

EXTRA = "override_optimizer_config"
NODE = {"optimizer_impl": "needy_impl", "optimizer": "Needy"}


class Needy(SGD):
    """Read every argument but one."""

    def __init__(
        self, params: Any, lr: float = 1e-3, power: float = 0.0, spare: int = 1
    ) -> None:
        super().__init__(params, lr)
        self.power = power


def needing(monkeypatch: pytest.MonkeyPatch, need: Need) -> None:
    """Offer a new class with this need."""
    cls = type("Needy", (Needy,), {"__module__": "needy_impl"})
    monkeypatch.setitem(NEEDS, ("needy_impl", "Needy"), need)
    offer(monkeypatch, "needy_impl", Needy=cls)


class WithFusedBackward(SGD):
    def fused_backward(self, loss: Tensor, lr: float) -> None: ...


class WithModes(SGD):
    def train(self) -> None: ...

    def eval(self) -> None: ...


class WithClosure(SGD):
    def step(self, closure: Any) -> None: ...


class OfModel(SGD):
    def __init__(self, model: nn.Module, lr: float = 1e-3) -> None:
        super().__init__(model.parameters(), lr)


class OfNames(SGD):
    def __init__(self, named_parameters: Any, lr: float = 1e-3) -> None:
        super().__init__([p for _, p in named_parameters], lr)


class Base(Optimizer):
    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)


class Below(Base):
    def __init__(self, params: Any, lr: float = 1e-3, **kwargs: Any) -> None:
        super().__init__(params, {"lr": lr, **kwargs})


@pytest.mark.parametrize(
    ("cls", "need"),
    [
        (WithFusedBackward, Need(protocol="fused_backward")),
        (WithModes, Need(protocol="train_eval_modes", only_warn=True)),
        (WithClosure, Need(protocol="closure")),
        (OfModel, Need(takes_model=True)),
        (OfNames, Need(named_parameters=True, one_group=True)),
        (Base, Need(refusal="is a base class: choose a subclass such as Below")),
        (Below, Need()),
        (torch.optim.AdamW, Need()),
    ],
)
def test_the_shape_of_a_class_tells_its_need(cls: type, need: Need) -> None:
    assert need_of(cls) == need


@pytest.mark.parametrize(
    ("need", "further", "message"),
    [
        (
            Need(refusal="is made elsewhere: choose SGD"),
            {},
            "Needy is made elsewhere: choose SGD @ optimizer",
        ),
        (
            Need(modules=("surely_missing_pkg",)),
            {},
            "Needy needs the module surely_missing_pkg: pip install surely_missing_pkg"
            " @ optimizer",
        ),
        (
            Need(wants=(Want("power", 0, 0.5),)),
            {"power": 0.0},
            "Needy does not work with power=0: write 0.5"
            " @ override_optimizer_config.power",
        ),
        (
            Need(wants=(Want("power", 0, 0.5, only_with="lr"),)),
            {},
            "Needy does not work with power=0 and lr: write 0.5"
            " @ override_optimizer_config.power",
        ),
        (
            Need(depends={"power": ("spare", 2)}),
            {"power": 0.5},
            "Needy reads power beside spare=2 only: write both, or leave power out"
            " @ override_optimizer_config.power",
        ),
        (
            Need(group_keys={"rank": 4, "gap": 2}),
            {"rank": 8},
            "Needy takes rank only together with gap: add {gap: 2}"
            " @ override_optimizer_config",
        ),
        (
            Need(accelerator=True),
            {},
            "Needy works on an accelerator only, and parameters are on the CPU: move"
            " the model first, model.to('cuda'), or choose another class @ optimizer",
        ),
        (
            Need(process_group=True),
            {},
            "Needy works in a process group: call torch.distributed.init_process_group"
            " first @ optimizer",
        ),
        (
            Need(),
            {"spare": 3},
            "Needy takes spare and does nothing with it: leave it out"
            " @ override_optimizer_config.spare",
        ),
        (
            Need(ignored=("power",)),
            {"power": 0.5},
            "Needy takes power and does nothing with it: leave it out"
            " @ override_optimizer_config.power",
        ),
    ],
)
def test_a_need_is_asked_for_before_the_class_is_called(
    module: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
    need: Need,
    further: dict[str, Any],
    message: str,
) -> None:
    needing(monkeypatch, need)
    assert str(refused(module, {**NODE, EXTRA: further})) == message


def test_a_builder_of_ones_own_gives_what_a_config_cannot(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    needing(monkeypatch, Need(refusal="needs an object"))

    @register_builder("needy_impl", "Needy")
    def build(cls: type, parameters: Any, module: Any, **arguments: Any) -> Optimizer:
        return cls(parameters, **arguments)

    assert build_optimizer(module, NODE).param_groups[0]["lr"] == 1e-3


def test_what_is_not_read_may_stand_at_its_own_default(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    needing(monkeypatch, Need())
    assert ignored_by(Needy) == {"spare"}
    optimizer = build_optimizer(module, {**NODE, EXTRA: {"spare": 1}})
    assert optimizer.power == 0.0


def test_named_parameters_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "needy_impl", Needy=OfNames)
    module = nn.Linear(4, 2)
    assert build_optimizer(module, {**NODE, "lr": 0.5}).defaults["lr"] == 0.5
    assert str(refused(module.parameters(), NODE)) == (
        "OfNames goes by the names of the parameters: give the module, or"
        " model.named_parameters() @ optimizer"
    )


def test_clipping_is_refused_where_there_is_no_step(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, "needy_impl", Needy=WithFusedBackward)
    error = refused(module, {**NODE, "clip_grad": 1.0})
    assert "clip_grad acts before a step, and there is none with fused_backward" in str(
        error
    )
