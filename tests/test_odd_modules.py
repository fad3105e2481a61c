"""Modules that break while they are imported, or leave something else behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn
from torch.optim import SGD

from case_helpers import refused
from optim_hydra import build_optimizer

NODE = {"optimizer_impl": "odd_impl", "optimizer": "SGD"}
Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the module that the node names."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_impl", raising=False)
    return lambda text: (tmp_path / "odd_impl.py").write_text(text) and None


MUTE = "class Mute(Exception):\n    def __str__(self): raise RuntimeError\n"
FAILS = "odd_impl fails while it is imported:"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{MUTE}raise Mute", f"{FAILS} Mute"),
        (
            "raise ModuleNotFoundError('no luck')",
            f"{FAILS} ModuleNotFoundError: no luck",
        ),
        ("import sys; sys.exit()", f"{FAILS} SystemExit"),
        (
            "import surely_missing_pkg.part",
            "odd_impl needs the module surely_missing_pkg, which is not installed:"
            " install its package",
        ),
        (
            "import sys; sys.modules[__name__] = None",
            "odd_impl leaves nothing in its place once it is imported",
        ),
    ],
)
def test_a_module_that_breaks_is_named(
    module: nn.Module, write: Write, text: str, message: str
) -> None:
    write(text)
    assert str(refused(module, NODE)) == f"{message} @ optimizer_impl"


CLOSED = """\
import sys
from torch.optim import SGD as found

class Closed:
    SGD, number = found, 3
    def __getattribute__(self, name):
        if name == "__dict__":
            raise RuntimeError
        return object.__getattribute__(self, name)

sys.modules[__name__] = Closed()
"""


def test_what_a_module_puts_in_its_own_place_is_asked_for_the_class(
    module: nn.Module, write: Write
) -> None:
    write(CLOSED)
    assert type(build_optimizer(module, NODE)) is SGD
    assert str(refused(module, {**NODE, "optimizer": "number"})) == (
        "odd_impl.number is a int and no torch.optim.Optimizer: choose a subclass such"
        " as AdamW @ optimizer"
    )


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            {"optimizer_impl": "torch.optim.AdamW"},
            "torch.optim.AdamW is a class and no module: write"
            " optimizer_impl=torch.optim optimizer=AdamW @ optimizer_impl",
        ),
        (
            {"optimizer": "torch.optim.AdamW.step"},
            "torch.optim.AdamW is a class and no module: write"
            " optimizer_impl=torch.optim optimizer=AdamW @ optimizer",
        ),
        (
            {"_target_": "torch.optim.SGD.step"},
            "torch.optim.SGD is a class and no module: write torch.optim.SGD"
            " @ _target_",
        ),
    ],
)
def test_a_class_in_place_of_a_module_is_told_how_to_write(
    module: nn.Module, node: dict[str, str], message: str
) -> None:
    assert str(refused(module, node)) == message


def test_a_name_that_is_too_long_for_a_file_is_a_name(module: nn.Module) -> None:
    name = "x" * 5000
    message = str(refused(module, {"optimizer": name}))
    assert message.endswith(f"was imported but has no {name} @ optimizer")
