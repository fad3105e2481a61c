"""Short names and builders: of a program, and of packages that ship their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from optim_hydra import (
    ConfigError,
    build_optimizer,
    register_builder,
    register_optimizer,
    registered_optimizers,
)
from optim_hydra.declared import NameTakenError

PLUGIN = """
import torch


class Tidy(torch.optim.SGD):
    pass


class Other(torch.optim.SGD):
    pass
"""


def install(folder: Path, name: str, entries: str) -> None:
    """Put a package with entry points where Python finds it, as pip does."""
    (folder / f"{name}.py").write_text(PLUGIN)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[optim_hydra.optimizers]\n{entries}\n")


BUILD = """
from torch import nn
from optim_hydra import build_optimizer, registered_optimizers
print(registered_optimizers())
optimizer = build_optimizer(nn.Linear(2, 2), {"optimizer": "tidy", "lr": 0.5})
print(type(optimizer), optimizer.param_groups[0]["lr"])
"""


def test_a_package_ships_a_name_of_its_own(tmp_path: Path, run_python) -> None:
    install(tmp_path, "lab_one", "tidy = lab_one:Tidy")
    result = run_python("-c", BUILD, PYTHONPATH=str(tmp_path))
    assert result.stdout.splitlines() == [
        "{'tidy': 'lab_one.Tidy'}",
        "<class 'lab_one.Tidy'> 0.5",
    ], result.stderr


@pytest.mark.parametrize("call", ["registered_optimizers()", "build()"])
def test_two_packages_with_one_name_are_both_named(
    tmp_path: Path, run_python, call: str
) -> None:
    install(tmp_path, "lab_one", "tidy = lab_one:Tidy")
    install(tmp_path, "lab_two", "tidy = lab_two:Other")
    code = f"""
from torch import nn
from optim_hydra import build_optimizer, registered_optimizers
build = lambda: build_optimizer(nn.Linear(2, 2), {{"optimizer": "tidy"}})
{call}
"""
    result = run_python("-c", code, PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "the name 'tidy' stands for lab_" in last
    assert "lab_one.Tidy of lab_one" in last
    assert "lab_two.Other of lab_two" in last


def test_a_package_and_the_program_may_not_claim_one_name(
    tmp_path: Path, run_python
) -> None:
    install(tmp_path, "lab_one", "tidy = lab_one:Tidy")
    code = """
from optim_hydra import register_optimizer, registered_optimizers
register_optimizer("tidy", "lab_one.Tidy")
print(registered_optimizers())
from optim_hydra.declared import DECLARED
DECLARED.optimizers.clear()
register_optimizer("tidy", "torch.optim.SGD")
registered_optimizers()
"""
    result = run_python("-c", code, PYTHONPATH=str(tmp_path))
    assert result.stdout == "{'tidy': 'lab_one.Tidy'}\n"
    assert result.stderr.splitlines()[-1] == (
        "optim_hydra.declared.NameTakenError: the name 'tidy' stands for lab_one.Tidy"
        " of lab_one; torch.optim.SGD needs another one"
    )


def test_a_package_does_not_take_a_name_of_torch_away(
    tmp_path: Path, run_python
) -> None:
    install(tmp_path, "lab_one", "AdamW = lab_one:Tidy")
    code = """
from torch import nn
from optim_hydra import build_optimizer
print(type(build_optimizer(nn.Linear(2, 2), {})).__module__)
"""
    result = run_python("-c", code, PYTHONPATH=str(tmp_path))
    assert result.stdout == "torch.optim.adamw\n", result.stderr


def test_a_name_stands_for_a_class_or_its_path(module: nn.Module) -> None:
    class Mine(torch.optim.SGD):
        pass

    register_optimizer("mine", Mine)
    register_optimizer("as_text", "torch.optim.SGD")
    assert registered_optimizers()["as_text"] == "torch.optim.SGD"
    assert type(build_optimizer(module, {"optimizer": "mine"})) is Mine
    assert type(build_optimizer(module, {"optimizer": "as_text"})) is torch.optim.SGD
    with pytest.raises(NameTakenError) as caught:
        register_optimizer("mine", "torch.optim.SGD")
    assert str(caught.value).endswith("Mine; torch.optim.SGD needs another one")


class NeedsModel(torch.optim.SGD):
    """Wants to know how many layers its model has."""

    def __init__(self, params, lr: float = 1e-3, *, num_layers: int = 0) -> None:
        super().__init__(params, lr)
        self.num_layers = num_layers


def build_with_layers(cls, parameters, module, **arguments):
    return cls(parameters, num_layers=len(list(module.children())), **arguments)


def test_a_builder_calls_its_class_with_the_module() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    register_builder(__name__, "NeedsModel")(build_with_layers)
    path = {"optimizer_impl": __name__, "optimizer": "NeedsModel"}
    rule = {"pattern": "1.*", "lr": 0.5}
    config = {**path, "weight_decay": 0.01, "lr": 0.1, "param_groups": [rule]}
    optimizer = build_optimizer(module, config)
    assert isinstance(optimizer, NeedsModel)
    assert optimizer.num_layers == 2
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    wrong = {**path, "override_optimizer_config": {"momentun": 0.9}}
    with pytest.raises(ConfigError, match="takes no momentun"):
        build_optimizer(module, wrong)


def test_one_class_has_one_builder() -> None:
    register_builder(__name__, "NeedsModel")(build_with_layers)
    register_builder(__name__, "NeedsModel")(build_with_layers)
    with pytest.raises(NameTakenError) as caught:
        register_builder(__name__, "NeedsModel")(lambda *_: None)
    assert "build_with_layers; " in str(caught.value)


def test_what_a_builder_makes_must_be_of_its_class(module: nn.Module) -> None:
    register_builder("torch.optim", "Rprop")(lambda *_, **__: None)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, {"optimizer": "Rprop"})
    assert str(caught.value) == (
        "calling torch.optim.rprop.Rprop makes no optimizer with param_groups: the"
        " class is broken @ optimizer"
    )
