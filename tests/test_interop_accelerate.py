"""accelerate prepares, accumulates, saves and loads what a node builds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.scheduler import AcceleratedScheduler
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils.fsdp_utils import fsdp2_switch_optimizer_parameters
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader

from accelerate_loop import data
from case_helpers import exact
from optim_hydra import (
    OptimizersContainer,
    assignment_report,
    build_lr_scheduler,
    build_optimizer,
    grad_norm,
    load_optimizer_state_dict,
    optimizer_state_dict,
)

PROGRAM = Path(__file__).parents[1] / "examples/interop/accelerate_loop.py"
LINEAR = {"lr": 0.1, "lr_scheduler_type": "linear", "total_training_steps": 4}
MUON = {"param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}


@pytest.fixture(autouse=True)
def _states() -> Iterator[None]:
    """Leave no state of a process behind."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


class Prepared:
    """A model with its optimizer and schedule, as accelerate hands them back."""

    def __init__(self, node: Any, num_batches: int = 2, **options: Any) -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        self.bare = build_optimizer(model, node)
        schedule = build_lr_scheduler(self.bare, node)
        self.accelerator = Accelerator(
            cpu=True, gradient_accumulation_steps=num_batches, **options
        )
        self.model, self.optimizer, self.loader, self.scheduler = (
            self.accelerator.prepare(
                model, self.bare, DataLoader(data(), batch_size=64), schedule
            )
        )

    def train(self) -> list[float]:
        """Train for an epoch, and return the rate of each batch."""
        rates = []
        for inputs, targets in self.loader:
            with self.accelerator.accumulate(self.model):
                loss = nn.functional.mse_loss(self.model(inputs), targets)
                self.accelerator.backward(loss)
                rates.append(self.optimizer.param_groups[0]["lr"])
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
        return rates

    def weights(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.model.parameters()]


def test_the_example_goes_on_from_what_it_saved(run_python) -> None:
    first = run_python(str(PROGRAM))
    assert first.returncode == 0, first.stderr
    loss = float(first.stdout.split("loss ")[1].split(",")[0])
    assert loss < 0.5
    rest = run_python(str(PROGRAM), "num_updates=80", "optim.on_resume=config")
    assert rest.returncode == 0, rest.stderr
    assert float(rest.stdout.split("loss ")[1].split(",")[0]) < loss


def test_the_schedule_goes_on_once_an_update_on_two_processes(run_fresh) -> None:
    halfway = ["optim.total_training_steps=40", "num_updates=20"]
    straight = ["optim.lr_scheduler_type=linear", "optim.lr_warmup_steps=0"]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    launch.append("--local-addr=127.0.0.1")
    network = {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1"}
    result = run_fresh(*launch, str(PROGRAM), *halfway, *straight, **network)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(", rate 1.5e-02\n")


def test_accumulated_batches_are_one_step_of_the_schedule() -> None:
    rates = Prepared(LINEAR).train()
    assert rates == exact(0.1, 0.1, 0.075, 0.075, 0.05, 0.05, 0.025, 0.025)


@pytest.mark.parametrize(
    "fields",
    [{"no_decay": ["bias"]}, MUON, {"optimizer": "SGD"}],
    ids=["AdamW in groups", "container of Muon and AdamW", "SGD"],
)
def test_a_loaded_run_ends_as_the_one_that_was_saved(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    node = {**LINEAR, "total_training_steps": 8, "clip_grad": 0.5, **fields}
    whole = Prepared(node)
    assert isinstance(whole.bare, OptimizersContainer) == (fields is MUON)
    whole.train()
    whole.accelerator.save_state(str(tmp_path))
    rates = whole.train()
    rest = Prepared(node)
    rest.accelerator.load_state(str(tmp_path))
    assert (
        rest.train() == rates == exact(*(0.1 * r / 8 for r in (4, 4, 3, 3, 2, 2, 1, 1)))
    )
    assert all(map(torch.equal, rest.weights(), whole.weights()))


def test_both_clip_to_the_lower_limit() -> None:
    node = {**LINEAR, "optimizer": "SGD", "weight_decay": 0.0, "clip_grad": 1e-2}
    kept = Prepared(node)
    before = kept.weights()
    nn.functional.mse_loss(kept.model(torch.ones(2, 8)), torch.ones(2, 1)).backward()
    kept.accelerator.clip_grad_norm_(kept.model.parameters(), 1e-3)
    kept.optimizer.step()
    moved = [new - old for old, new in zip(before, kept.weights(), strict=True)]
    norm = float(torch.cat([each.flatten() for each in moved]).norm())
    assert norm == pytest.approx(0.1 * 1e-3, rel=1e-3)


@pytest.mark.parametrize("rules", [{}, MUON], ids=["one class", "container"])
def test_an_update_that_is_skipped_leaves_the_schedule(rules: dict[str, Any]) -> None:
    kept = Prepared({**LINEAR, "clip_grad": 0.5, **rules}, num_batches=1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    optimizer = AcceleratedOptimizer(kept.bare, scaler=scaler)
    schedule = AcceleratedScheduler(kept.scheduler.scheduler, optimizer)
    rates = []
    for factor in (1.0, torch.inf, 1.0):
        loss = kept.model(torch.ones(2, 8)).square().mean() * factor
        scaler.scale(loss).backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        rates.append(schedule.get_last_lr()[0])
    assert rates == exact(0.075, 0.075, 0.05)


@pytest.mark.parametrize("rules", [{}, MUON], ids=["one class", "container"])
def test_what_accelerate_wraps_is_seen_through(rules: dict[str, Any]) -> None:
    kept = Prepared({**LINEAR, "clip_grad": 0.5, **rules})
    kept.train()
    wrapper, bare = kept.optimizer, kept.bare
    assert isinstance(wrapper, AcceleratedOptimizer)
    assert grad_norm(wrapper) == grad_norm(bare) > 0
    assert assignment_report(wrapper) == assignment_report(bare)
    saved = optimizer_state_dict(wrapper)
    assert saved.keys() == optimizer_state_dict(bare).keys()
    assert not load_optimizer_state_dict(wrapper, saved).differences
    assert build_lr_scheduler(wrapper, {}).optimizer is bare


def shard_as_accelerate_does(model: nn.Module, optimizer: Any) -> None:
    """Do what `prepare` does with FSDP2, for which it wants an accelerator."""
    names = {p.data_ptr(): name for name, p in model.named_parameters()}
    for group in optimizer.param_groups:
        for index, parameter in enumerate(group["params"]):
            group["params"][index] = torch.empty(1)
            group["params"][index].data_ptr = parameter.data_ptr()
    fully_shard(model)
    new = dict(model.named_parameters())
    mapping = {pointer: new[name] for pointer, name in names.items()}
    fsdp2_switch_optimizer_parameters(optimizer, mapping)


@pytest.mark.parametrize("rules", [{}, MUON], ids=["one class", "container"])
def test_shards_in_place_of_parameters_are_trained(
    rules: dict[str, Any], one_process
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizer = build_optimizer(model, {"lr": 0.1, "clip_grad": 0.5, **rules})
    shard_as_accelerate_does(model, optimizer)
    before = [p.full_tensor().clone() for p in model.parameters()]
    model(torch.ones(2, 4)).square().sum().backward()
    optimizer.step()
    after = [p.full_tensor() for p in model.parameters()]
    assert not any(map(torch.equal, before, after))
    momentum = "momentum_buffer" if rules else "exp_avg"
    assert f"state.0.weight.{momentum}" in optimizer_state_dict(optimizer)
