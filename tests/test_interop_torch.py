"""Plain torch loops: several processes, half precision, a compiled step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from case_helpers import exact
from optim_hydra import build_lr_scheduler, build_optimizer, grad_norm

EXAMPLES = Path(__file__).parents[1] / "examples/interop"
LAUNCH = (
    *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
    "--local-addr=127.0.0.1",
)
LINEAR = {"lr": 0.1, "lr_scheduler_type": "linear", "total_training_steps": 10}
MUON = {"param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}


def numbers(line: str) -> list[float]:
    return [float(text) for text in re.findall(r"[\d.]*\d", line)]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_two_processes_train_as_one(strategy: str, run_python, run_fresh) -> None:
    program = (str(EXAMPLES / "distributed_loop.py"), f"strategy={strategy}")
    alone = run_python(*program)
    assert alone.returncode == 0, alone.stderr
    network = {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1"}
    together = run_fresh(*LAUNCH, *program, **network)
    assert together.returncode == 0, together.stderr
    expected, found = (run.stdout.splitlines()[-1] for run in (alone, together))
    assert expected.startswith("loss ")
    assert numbers(found) == pytest.approx(numbers(expected), rel=1e-3)
    assert 0 < numbers(found)[0] < 1


@pytest.mark.parametrize(
    ("options", "num_skipped"),
    [((), 0), (("dtype=float16",), 0), (("dtype=float16", "init_scale=1e30"), 50)],
    ids=["bfloat16", "float16", "scaled too high"],
)
def test_the_example_learns_in_half_precision(
    options: tuple[str, ...], num_skipped: int, run_python
) -> None:
    result = run_python(str(EXAMPLES / "mixed_precision.py"), *options)
    assert result.returncode == 0, result.stderr
    loss, norm, skipped = numbers(result.stdout.splitlines()[-1])
    assert loss < 1.0
    assert 0 < norm < 10  # neither scaled nor overflown
    assert skipped >= num_skipped


@pytest.mark.parametrize("fields", [{}, MUON], ids=["one class", "container"])
@pytest.mark.parametrize("implementation", [None, "fused"])
def test_a_scaler_clips_unscaled_gradients_and_a_skipped_update_moves_nothing(
    fields: dict[str, Any], implementation: str | None
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    node = {**LINEAR, "clip_grad": 0.1, **fields}
    if not fields:
        node["implementation"] = implementation
    optimizer = build_optimizer(model, node)
    scheduler = build_lr_scheduler(optimizer, node)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    norms, rates = [], []
    for factor in (1.0, torch.inf, 1.0):
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4)).square().sum()
        own = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        norms.append(float(nn.utils.get_total_norm(own)))
        before = [p.detach().clone() for p in model.parameters()]
        scaler.scale(loss * factor).backward()
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        is_skipped = scaler.get_scale() < scale
        assert is_skipped == (factor == torch.inf)
        assert is_skipped == all(map(torch.equal, before, model.parameters()))
        if not is_skipped:
            scheduler.step()
            assert grad_norm(optimizer) == pytest.approx(norms[-1], rel=1e-4)
        rates.append(scheduler.get_last_lr()[0])
    assert rates == exact(0.09, 0.09, 0.08)


def trained(
    model: nn.Module, optimizer: Any, scheduler: Any
) -> tuple[int, list[Tensor]]:
    """Train with a compiled step; return how many graphs that took, and the weights."""
    torch._dynamo.reset()
    counters.clear()
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).square().mean().backward()
        step()
        scheduler.step()
    weights = [p.detach().clone() for p in model.parameters()]
    return counters["stats"]["unique_graphs"], weights


def layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))


@pytest.mark.parametrize("is_tensor", [True, False], ids=["tensor", "number"])
def test_a_step_compiles_as_often_as_that_of_the_class(is_tensor: bool) -> None:
    model, own = layers(), layers()
    optimizer = build_optimizer(model, LINEAR)
    plain = AdamW(own.parameters(), lr=0.1)
    for each in (optimizer, plain):
        rate = each.param_groups[0]["lr"]
        each.param_groups[0]["lr"] = torch.tensor(rate) if is_tensor else rate
    tensor = optimizer.param_groups[0]["lr"]
    scheduler = build_lr_scheduler(optimizer, LINEAR)
    found = trained(model, optimizer, scheduler)
    expected = trained(own, plain, LambdaLR(plain, lambda step: 1 - step / 10))
    assert found[0] == expected[0] == (1 if is_tensor else 2)
    assert all(map(torch.equal, found[1], expected[1]))
    if is_tensor:
        assert optimizer.param_groups[0]["lr"] is tensor
        assert float(tensor) == pytest.approx(0.04)


def test_the_example_compiles_its_step_once(run_fresh) -> None:
    program = str(EXAMPLES / "compiled_step.py")
    result = run_fresh(program, TORCHDYNAMO_DISABLE="0")
    assert result.returncode == 0, result.stderr
    loss, num_graphs = numbers(result.stdout.splitlines()[-1])
    assert loss < 1.0
    assert num_graphs == 1
