"""Objects that lie about what they are, or whose metaclass answers in their place."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn
from torch.optim import SGD, Optimizer

from case_helpers import offer, refused
from optim_hydra import build_optimizer

NODE = {"optimizer_impl": "hostile_impl", "optimizer": "Hostile"}


class CalledError(BaseException):
    """Whatever raises it should not have been called."""


class LiesAboutItsClass:
    """Say to be a class of optimizers; calling it is what it is after."""

    __bases__ = (Optimizer,)
    __name__ = __qualname__ = "SGD"
    __mro__ = (Optimizer,)

    @property
    def __class__(self) -> type:
        return type

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise CalledError


class SaysYes(type):
    """Claim to be above and below everything."""

    def __subclasscheck__(cls, other: type) -> bool:
        return True

    def __instancecheck__(cls, other: object) -> bool:
        return True

    def __call__(cls, *args: Any, **kwargs: Any) -> None:
        raise CalledError


class SaysYesToAll(metaclass=SaysYes):
    """Be no optimizer."""


class LiesAboutItsBases(type):
    """Show other bases than there are."""

    @property
    def __mro__(cls) -> tuple[type, ...]:
        return (cls, Optimizer, object)

    __bases__ = (Optimizer,)

    def __call__(cls, *args: Any, **kwargs: Any) -> None:
        raise CalledError


class HasOtherBases(metaclass=LiesAboutItsBases):
    """Be no optimizer."""


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (LiesAboutItsClass(), "LiesAboutItsClass"),
        (SaysYesToAll, "class"),
        (HasOtherBases, "class"),
        (SGD.__init__, "function"),
        (None, "NoneType"),
    ],
)
def test_only_a_real_optimizer_class_is_called(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch, found: object, kind: str
) -> None:
    offer(monkeypatch, "hostile_impl", Hostile=found)
    assert str(refused(module, NODE)) == (
        f"hostile_impl.Hostile is a {kind} and no torch.optim.Optimizer: choose a"
        " subclass such as AdamW @ optimizer"
    )


class Answers(type(Optimizer)):
    """Have every attribute that is asked for."""

    def __getattr__(cls, name: str) -> Any:
        return print


class Explodes(type(Optimizer)):
    """Raise at every attribute that is not there."""

    def __getattr__(cls, name: str) -> Any:
        raise CalledError


@pytest.mark.parametrize("metaclass", [Answers, Explodes])
def test_a_metaclass_is_not_asked_what_its_class_needs(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch, metaclass: type
) -> None:
    def init(self: SGD, params: Any, lr: float = 1e-3) -> None:
        SGD.__init__(self, params, lr)

    hostile = metaclass("Hostile", (SGD,), {"__init__": init})
    offer(monkeypatch, "hostile_impl", Hostile=hostile)
    optimizer = build_optimizer(module, {**NODE, "lr": 0.5})
    assert type(optimizer) is hostile
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_the_hook_of_a_base_for_subclasses_is_not_run(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Base(SGD):
        def __init_subclass__(cls, **kwargs: Any) -> None:
            raise CalledError

    offer(monkeypatch, "hostile_impl", Hostile=Base)
    assert type(build_optimizer(module, {**NODE, "lr": 0.5})) is Base


def test_a_class_that_drops_parameters_is_refused(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile(SGD):
        def __init__(self, params: Any, lr: float = 1e-3) -> None:
            super().__init__(params, lr)
            self.param_groups[0]["params"].pop()

    offer(monkeypatch, "hostile_impl", Hostile=Hostile)
    rule = {"pattern": "bias", "freeze": True}
    assert str(refused(module, NODE)) == (
        "Hostile holds 1 of the 2 parameters that it was given, not bias: choose"
        " another class @ optimizer"
    )
    assert str(refused(module, {**NODE, "param_groups": [rule]})) == (
        "Hostile holds 0 of the 1 parameters that it was given, not weight: choose"
        " another class @ optimizer"
    )
    assert module.bias.requires_grad


def test_hooks_of_a_broken_optimizer_are_made_ready(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile(Optimizer):
        """Leave the constructor of torch out, as some wrappers do."""

        def __init__(self, params: Any, lr: float = 1e-3) -> None:
            self.inner = SGD(params, lr)
            self.param_groups, self.state = self.inner.param_groups, self.inner.state

        def step(self, closure: Any = None) -> None:
            self.inner.step(closure)

    offer(monkeypatch, "hostile_impl", Hostile=Hostile)
    optimizer = build_optimizer(module, {**NODE, "lr": 0.5, "clip_grad": 1e-9})
    before = module.weight.detach().clone()
    (module.weight.sum() * 1e6).backward()
    optimizer.step()
    assert 0 < (module.weight - before).abs().max() < 1e-6


class AskedError(Exception):
    """Tell that something was asked that should not have been, or in vain."""


class Mute(Exception):  # noqa: N818 - the name is in the message
    """Fail at being shown."""

    def __str__(self) -> str:
        raise AskedError


class Unequal(type):
    """Raise when it is compared or hashed."""

    def __eq__(cls, other: object) -> bool:
        raise AskedError

    def __hash__(cls) -> int:
        raise AskedError


class Closed(type):
    """Raise at every attribute."""

    def __getattribute__(cls, name: str) -> Any:
        raise AskedError(name)


@pytest.mark.parametrize(
    ("metaclass", "own", "message"),
    [
        (Unequal, {}, "AskedError"),
        (Closed, {}, "AskedError: __module__"),
        (type, {"__module__": 5}, "its module and names are no texts"),
    ],
)
def test_a_class_that_can_not_be_read_is_refused(
    module: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
    metaclass: type,
    own: dict[str, Any],
    message: str,
) -> None:
    offer(monkeypatch, "hostile_impl", Hostile=metaclass("Hostile", (SGD,), own))
    error = refused(module, NODE)
    assert str(error) == f"hostile_impl.Hostile can't be read: {message} @ optimizer"


def test_a_class_beside_the_one_that_is_meant_is_not_compared(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Unequal("Beside", (), {})
    offer(monkeypatch, "hostile_impl", Hostile=SGD, Beside=beside)
    assert type(build_optimizer(module, NODE)) is SGD


def test_an_error_that_can_not_be_shown_is_named(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile(SGD):
        def __init__(self, params: Any, lr: float = 1e-3) -> None:
            raise Mute

    offer(monkeypatch, "hostile_impl", Hostile=Hostile)
    name = f"{__name__}.{Hostile.__qualname__}"
    assert str(refused(module, NODE)) == f"{name} refuses its arguments: Mute"
