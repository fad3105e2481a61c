"""Texts of a config that would have other things imported or called than optimizers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import nn

from case_helpers import refused
from optim_hydra import register_optimizer, validate
from optim_hydra.declared import set_allowed_impls
from optim_hydra.errors import TargetError, UnknownKeyError
from optim_hydra.store import _REGISTER

BASE_CLASS = "and no torch.optim.Optimizer: choose a subclass such as AdamW"
NOT_NAMED = "is neither a Python name nor a dotted path of them"
HIDDEN = "_target_ is refused here: arguments are plain values @ optim."
EVIL = {"_target_": "builtins.exec", "_args_": ["raise SystemExit"]}


@pytest.mark.parametrize(
    ("impl", "name", "message"),
    [
        (
            "logging.os",
            "system",
            "the module logging.os does not exist: logging has no os @ optimizer_impl",
        ),
        (
            "torch.optim",
            "torch.optim.optimizer.torch.load",
            "the module torch.optim.optimizer.torch does not exist:"
            " torch.optim.optimizer has no torch @ optimizer",
        ),
        (
            "torch.optim.optimizer",
            "torch",
            f"torch.optim.optimizer.torch is a module {BASE_CLASS} @ optimizer",
        ),
        (
            "builtins",
            "exec",
            f"builtins.exec is a builtin_function_or_method {BASE_CLASS} @ optimizer",
        ),
        (
            "torch.optim",
            "__builtins__",
            f"torch.optim.__builtins__ is a dict {BASE_CLASS} @ optimizer",
        ),
        (
            "torch.optim",
            "__class__",
            f"torch.optim.__class__ is a class {BASE_CLASS} @ optimizer",
        ),
        ("torch.optim", " AdamW", f"' AdamW' {NOT_NAMED} @ optimizer"),
        ("torch.optim", "AdamW()", f"'AdamW()' {NOT_NAMED} @ optimizer"),
        ("torch..optim", "SGD", f"'torch..optim' {NOT_NAMED} @ optimizer_impl"),
        (".optim", "SGD", f"'.optim' {NOT_NAMED} @ optimizer_impl"),
        ("os; import x", "SGD", f"'os; import x' {NOT_NAMED} @ optimizer_impl"),
        ("../optim", "SGD", f"'../optim' {NOT_NAMED} @ optimizer_impl"),
    ],
)
def test_the_two_fields_name_a_class_and_nothing_else(
    module: nn.Module, impl: str, name: str, message: str
) -> None:
    error = refused(module, {"optimizer_impl": impl, "optimizer": name})
    assert isinstance(error, TargetError)
    assert str(error) == message


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("os.system", f"os.system is a builtin_function_or_method {BASE_CLASS}"),
        (
            "torch.optim.optimizer.torch.load",
            "the module torch.optim.optimizer.torch does not exist:"
            " torch.optim.optimizer has no torch",
        ),
        *[
            (
                text,
                f"{text!r} is no dotted path of a class: write torch.optim.SGD, or"
                " optimizer: SGD without _target_",
            )
            for text in ("SGD", ".SGD", "torch.optim.", "torch..optim.SGD", "a b.SGD")
        ],
    ],
)
def test_a_plain_node_names_a_class_and_nothing_else(
    module: nn.Module, target: str, message: str
) -> None:
    error = refused(module, {"_target_": target, "lr": 0.1})
    assert str(error) == f"{message} @ _target_"


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Offer a module that never ends its import, and would leave a file."""
    hang = "import pathlib, time\npathlib.Path(__file__ + '.ran').touch()\n"
    (tmp_path / "trap_impl.py").write_text(hang + "time.sleep(1000)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return str(tmp_path / "trap_impl.py.ran")


TRAPS: list[dict[str, Any]] = [
    {"optimizer_impl": "trap_impl", "optimizer": "SGD"},
    {"optimizer": "trap_impl.SGD"},
    {"optimizer": "trapped"},
    {"_target_": "trap_impl.SGD"},
    {"param_groups": [{"pattern": "*", "optimizer": "trap_impl.SGD"}]},
    {
        "optimizer_impl": "pytorch_optimizer",
        "optimizer": "Lookahead",
        "override_optimizer_config": {"optimizer": {"optimizer": "trap_impl.SGD"}},
    },
]


@pytest.mark.parametrize("node", TRAPS)
def test_what_is_not_allowed_is_not_imported(
    module: nn.Module, trap: str, node: dict[str, Any]
) -> None:
    register_optimizer("trapped", "trap_impl.SGD")
    set_allowed_impls(["torch.optim", "pytorch_optimizer"])
    error = refused(module, node)
    assert len(error.problems) == 1
    assert str(error).startswith(
        "trap_impl is not among the modules this program allows:"
        " pytorch_optimizer, torch.optim; the program itself adds one by"
        " set_allowed_impls @ "
    )
    assert "trap_impl" not in sys.modules
    assert not Path(trap).exists()


@pytest.mark.parametrize(
    "name", ["torch.optim.sgd.SGD", "torch.optim._adafactor.torch"]
)
def test_a_part_of_an_allowed_module_is_not_allowed_with_it(
    module: nn.Module, name: str
) -> None:
    set_allowed_impls("torch.optim")
    assert "is not among the modules" in str(refused(module, {"optimizer": name}))


@pytest.mark.parametrize(
    ("further", "key"),
    [
        ({"foreach": EVIL}, "foreach"),
        ({"foreach": [1, {"a": (EVIL,)}]}, "foreach"),
        ({"foreach": "${evil}"}, "foreach"),
        ({"foreach": {"deep": ["${evils}"]}}, "foreach"),
        ({"foreach": "${makes_evil:}"}, "foreach"),
        ({"_target_": "builtins.exec"}, "_target_"),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_a_target_among_the_arguments_is_refused_however_it_got_there(
    module: nn.Module, further: dict[str, Any], key: str, strict: bool
) -> None:
    _REGISTER("makes_evil", lambda: OmegaConf.create(EVIL))
    nodes = {
        "": {"override_optimizer_config": further},
        "param_groups[0].": {
            "param_groups": [{"pattern": "*", "override_optimizer_config": further}]
        },
    }
    for at, items in nodes.items():
        cfg = OmegaConf.create(
            {"evil": EVIL, "evils": [EVIL], "optim": {**items, "strict": strict}},
            flags={"allow_objects": True},
        )
        message = f"{HIDDEN}{at}override_optimizer_config.{key}"
        error = refused(module, cfg.optim)
        assert (type(error), str(error)) == (UnknownKeyError, message)
        with pytest.raises(UnknownKeyError) as caught:
            validate(cfg)
        assert str(caught.value) == message


def test_a_target_in_a_rule_is_refused(module: nn.Module) -> None:
    error = refused(module, {"param_groups": [{"pattern": "*", **EVIL}]})
    assert "no field _target_" in str(error)
    assert "param_groups[0]._target_" in str(error)


@pytest.mark.parametrize("key", ["_args_", "_partial_", "_convert_", "_recursive_"])
def test_hydras_words_are_no_arguments(module: nn.Module, key: str) -> None:
    error = refused(module, {"override_optimizer_config": {key: True}})
    assert str(error).startswith(f"AdamW takes no {key}")


def test_instantiate_calls_nothing_among_the_arguments(compose, tmp_path) -> None:
    ran = tmp_path / "ran"
    evil = f"{{_target_: pathlib.Path.touch, _args_: ['{ran}']}}"
    key = "actor.optim.override_optimizer_config"
    cfg = compose(f"{key}={{betas: {evil}}}")
    with pytest.raises(Exception, match="_target_ is refused here"):
        instantiate(cfg)
    assert not ran.exists()
