"""Containers for the parts of a model, in the forms of torchtitan's spec functions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn

from case_helpers import exact
from optim_hydra import OptimConfig
from torchtitan_specs import Config, build_lr_schedulers, build_optimizers

PROGRAM = str(Path(__file__).parents[1] / "examples/interop/torchtitan_specs.py")
LINEAR = {"lr": 0.1, "lr_scheduler_type": "linear"}
MUON = [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]
FORMS: dict[str, Any] = {
    "class": Config(form="class", optim=OptimConfig(**LINEAR)),
    "node of one class": Config(optim=OptimConfig(**LINEAR)),
    "node of two classes": Config(optim=OptimConfig(**LINEAR, param_groups=MUON)),
}


def started(cfg: Config) -> SimpleNamespace:
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 2))
    optimizers = build_optimizers([whole[:2], whole[2:]], cfg)
    schedulers = build_lr_schedulers(optimizers, cfg, 8)
    return SimpleNamespace(whole=whole, optimizers=optimizers, schedulers=schedulers)


def states(run: SimpleNamespace) -> dict[str, Any]:
    return {
        "model": run.whole.state_dict(),
        "optimizer": run.optimizers,
        "lr_scheduler": run.schedulers,
    }


def train(run: SimpleNamespace, num_steps: int) -> list[list[float]]:
    rates = []
    for _ in range(num_steps):
        run.optimizers.zero_grad()
        run.whole(torch.ones(3, 4)).square().sum().backward()
        rates.append([group["lr"] for group in run.optimizers.param_groups])
        run.optimizers.step()
        run.schedulers.step()
    return rates


def weights(run: SimpleNamespace) -> list[Tensor]:
    return [p.detach().clone() for p in run.whole.parameters()]


@pytest.mark.parametrize("form", FORMS)
def test_all_parts_follow_one_schedule(form: str) -> None:
    run = started(FORMS[form])
    before = weights(run)
    for step, rates in enumerate(train(run, 3)):
        assert rates == exact(*([0.1 * (1 - step / 8)] * len(rates)))
    assert not any(map(torch.equal, before, weights(run)))


# Said although no_dist tells that there is one process.
@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_is_by_name_and_goes_on(form: str, tmp_path: Path) -> None:
    whole = started(FORMS[form])
    train(whole, 3)
    dcp.save(states(whole), checkpoint_id=tmp_path, no_dist=True)
    train(whole, 3)
    rest = started(FORMS[form])
    dcp.load(states(rest), checkpoint_id=tmp_path, no_dist=True)
    rates = train(rest, 3)
    assert rates[0][0] == pytest.approx(0.1 * 5 / 8)
    assert all(map(torch.equal, weights(rest), weights(whole)))
    saved = dcp.FileSystemReader(tmp_path).read_metadata().state_dict_metadata
    assert "optimizer.param_groups.3.weight.lr" in saved


@pytest.mark.parametrize("form", ["node", "class"])
def test_the_example_learns_and_goes_on_from_half_way(form: str, run_python) -> None:
    whole = run_python(PROGRAM, f"form={form}")
    assert whole.returncode == 0, whole.stderr
    rest = run_python(PROGRAM, f"form={form}")
    assert rest.returncode == 0, rest.stderr
    for run in (whole, rest):
        loss, _, kinds = run.stdout.rpartition("loss ")[2].partition(", ")
        assert float(loss) < 0.6
        assert ("Muon" in kinds) == (form == "node")
