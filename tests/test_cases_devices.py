"""Devices and kernels, as public bug reports met them.

Cases: B118, B121, B125.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

from case_helpers import ACTOR_BASE, EXTRA, Compose, Run, group_of, offer, write
from optim_hydra import ConfigError, build_optimizer

USE = """\
import os, sys
import hydra, optim_hydra


def use():
    with hydra.initialize_config_dir(sys.argv[1], version_base=None):
        config = optim_hydra.compose("config", sys.argv[2:])
    optim_hydra.validate(config)
    import torch

    module = torch.nn.Linear(4, 2)
    optimizer = optim_hydra.build_optimizer(module, config.actor.optim)
    scheduler = optim_hydra.build_lr_scheduler(optimizer, config.actor.optim)
    module(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
    return torch.cuda.is_initialized(), optimizer.param_groups[0]["lr"]

"""
WHOLE = "print(*use(), flush=True)\n"
FORK = """\
child = os.fork()
if child == 0:
    print("child", *use(), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
DEVICES = """\
import torch

torch.optim.AdamW(torch.nn.Linear(1, 1).parameters())
calls = set()


def note(frame, event, argument):
    if event == "call" and "torch/cuda" in frame.f_code.co_filename:
        calls.add(frame.f_code.co_name)


with hydra.initialize_config_dir(sys.argv[1], version_base=None):
    config = optim_hydra.compose("config", sys.argv[2:])
module = torch.nn.Linear(4, 2)
sys.setprofile(note)
optim_hydra.validate(config)
optim_hydra.build_optimizer(module, config.actor.optim)
sys.setprofile(None)
print(sorted(calls & {"device_count", "_device_count_nvml", "_lazy_init", "init"}))
"""


@pytest.fixture
def conf(tmp_path: Path) -> str:
    return str(write(tmp_path / "conf", config_yaml=ACTOR_BASE))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (FORK + WHOLE, "child False 0.5\n0\nFalse 0.5\n"),
        (WHOLE + FORK, "False 0.5\nchild False 0.5\n0\n"),
        (DEVICES, "[]\n"),
    ],
)
def test_B118_cuda_is_not_started(
    run_python: Run, conf: str, program: str, expected: str
) -> None:
    done = run_python("-c", USE + program, conf, "actor.optim.lr=0.5")
    assert done.stdout == expected, done.stderr


@pytest.mark.parametrize(
    ("optimizer", "extra"), [("SGD", "fused"), ("Adam", "foreach")]
)
def test_B118_kin_fused_and_foreach(
    run_python: Run, conf: str, optimizer: str, extra: str
) -> None:
    overrides = [
        f"actor.optim.optimizer={optimizer}",
        "actor.optim.lr=0.5",
        f"+{EXTRA}.{extra}=true",
    ]
    done = run_python("-c", USE + FORK + WHOLE, conf, *overrides)
    assert done.stdout == "child False 0.5\n0\nFalse 0.5\n", done.stderr


def test_B121_foreach_can_be_switched_off(compose: Compose, module: nn.Module) -> None:
    config = compose(f"+{EXTRA}.foreach=false")
    group = group_of(module, config.actor.optim)
    assert (group["foreach"], group["fused"]) == (False, None)
    group = group_of(module, compose().actor.optim)
    assert (group["foreach"], group["fused"]) == (None, None)


def test_B121_class_without_foreach(compose: Compose, module: nn.Module) -> None:
    config = compose("actor.optim.optimizer=LBFGS", f"+{EXTRA}.foreach=false")
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim, provides=["closure"])
    assert "LBFGS takes no foreach" in str(caught.value)
    assert str(caught.value).endswith(f"@ {EXTRA}.foreach")


@pytest.mark.parametrize(
    ("optimizer", "switch"),
    [("SGD", "foreach"), ("Adagrad", "foreach"), ("AdamW", "capturable")],
)
def test_B121_kin_other_classes_and_switches(
    compose: Compose, module: nn.Module, optimizer: str, switch: str
) -> None:
    config = compose(f"actor.optim.optimizer={optimizer}", f"+{EXTRA}.{switch}=false")
    group = group_of(module, config.actor.optim)
    assert group[switch] is False
    assert group["foreach"] is (False if switch == "foreach" else None)


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD", "Adam", "Adagrad"])
def test_B125_fused_on_the_cpu(
    compose: Compose, module: nn.Module, optimizer: str
) -> None:
    config = compose(f"actor.optim.optimizer={optimizer}", f"+{EXTRA}.fused=true")
    built = build_optimizer(module, config.actor.optim)
    assert built.param_groups[0]["fused"] is True
    before = module.weight.detach().clone()
    module(torch.ones(3, 4)).sum().backward()
    built.step()
    assert not torch.equal(module.weight, before)


class NoFused(SGD):
    """Refuse as torch does where a device has no fused kernel."""

    def __init__(self, params: Any, lr: float = 1e-3, *, fused: bool = False) -> None:
        super().__init__(params, lr=lr)
        if fused:
            msg = "no fused kernel here"
            raise RuntimeError(msg)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        (f"+{EXTRA}.fused=true", f"{EXTRA}.fused"),
        ("actor.optim.implementation=fused", "actor.optim.implementation"),
    ],
)
def test_B125_refusal_keeps_text_cause_and_key(
    compose: Compose,
    module: nn.Module,
    monkeypatch: pytest.MonkeyPatch,
    override: str,
    key: str,
) -> None:
    offer(monkeypatch, "no_fused_impl", NoFused=NoFused)
    choice = ["optimizer_impl=no_fused_impl", "optimizer=NoFused"]
    overrides = [f"actor.optim.{text}" for text in choice]
    assert type(build_optimizer(module, compose(*overrides).actor.optim)) is NoFused
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, compose(*overrides, override).actor.optim)
    assert "RuntimeError: no fused kernel here" in str(caught.value)
    assert str(caught.value).endswith(f"@ {key}")
    cause = caught.value.__cause__
    assert (type(cause), str(cause)) == (RuntimeError, "no fused kernel here")


@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
def test_B125_kin_torchs_own_refusal(
    compose: Compose, module: nn.Module, optimizer: str
) -> None:
    keys = ["differentiable", "fused"]
    overrides = [f"+{EXTRA}.{key}=true" for key in keys]
    config = compose(f"actor.optim.optimizer={optimizer}", *overrides)
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, config.actor.optim)
    cause = caught.value.__cause__
    assert isinstance(cause, RuntimeError)
    assert str(cause) in str(caught.value)
    for key in keys:
        assert f"{EXTRA}.{key}" in str(caught.value).rpartition(" @ ")[2]
