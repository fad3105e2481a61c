"""Lightning trains with what a node builds, and resumes as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor
from torch.optim import Optimizer

from case_helpers import exact
from lightning_module import Regression, data
from optim_hydra import (
    OptimizersContainer,
    assignment_report,
    build_lr_scheduler,
    build_optimizer,
    grad_norm,
    optimizer_state_dict,
)

EXAMPLES = Path(__file__).parents[1] / "examples/interop"
LINEAR = {"optimizer": "SGD", "lr": 0.1, "lr_scheduler_type": "linear"}
HIDDEN = [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]
QUIET = {
    "accelerator": "cpu",
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class Recording(Regression):
    """Notes the rate of each update, and how often hooks fire."""

    def __init__(self, optim: Any) -> None:
        super().__init__(optim)
        self.rates: list[float] = []

    def configure_optimizers(self) -> Any:
        made = super().configure_optimizers()
        made["optimizer"].register_step_pre_hook(self.note)
        return made

    def note(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self.rates.append(optimizer.param_groups[0]["lr"])


def fit(
    optim: Any,
    max_steps: int = 8,
    made: Callable[[Any], Regression] = Recording,
    ckpt_path: str | None = None,
    **options: Any,
) -> tuple[Any, lightning.Trainer]:
    lightning.seed_everything(0, verbose=False)
    model = made(optim)
    settings = {"enable_checkpointing": False, **QUIET, **options}
    trainer = lightning.Trainer(max_steps=max_steps, **settings)
    trainer.fit(model, data(), ckpt_path=ckpt_path)
    return model, trainer


def weights(model: torch.nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def loss_in(stdout: str) -> float:
    return float(stdout.rpartition("loss ")[2].partition(" ")[0])


def test_the_example_learns_and_goes_on_where_it_was(tmp_path, run_python) -> None:
    program = str(EXAMPLES / "lightning_module.py")
    whole = run_python(program)
    assert whole.returncode == 0, whole.stderr
    assert loss_in(whole.stdout) < 0.5
    rest = run_python(program, "ckpt_path=checkpoints/32.ckpt")
    assert rest.returncode == 0, rest.stderr
    assert rest.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1]


def test_the_example_of_two_modules_learns(run_python) -> None:
    program = str(EXAMPLES / "lightning_actor_critic.py")
    result = run_python(program, "critic.optim.optimizer=RMSprop")
    assert result.returncode == 0, result.stderr
    assert "critic.optim: RMSprop" in result.stdout
    # Half of the arms pay to whoever has learnt nothing.
    assert float(result.stdout.split("mean reward ")[1]) > 0.8


def test_the_rate_moves_once_an_update() -> None:
    model, trainer = fit(LINEAR)
    assert model.rates == exact(*(0.1 * (1 - step / 8) for step in range(8)))
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0.0


def test_accumulated_batches_are_one_step_of_the_schedule() -> None:
    model, _ = fit(LINEAR, max_steps=4, accumulate_grad_batches=4)
    assert model.rates == exact(0.1, 0.075, 0.05, 0.025)


# The second run saves beside what it was given to go on from.
@pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists:UserWarning")
@pytest.mark.parametrize(
    "fields",
    [{}, {"param_groups": HIDDEN}, {"optimizer": "SGD", "no_decay": ["bias"]}],
    ids=["AdamW", "container of Muon and AdamW", "SGD in groups"],
)
def test_a_resumed_run_ends_as_the_whole_run(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    optim = {"lr_scheduler_type": "cosine", "clip_grad": 0.5, "lr": 0.01, **fields}
    kept = ModelCheckpoint(tmp_path, "{step}", save_top_k=-1, every_n_train_steps=8)
    options = {"enable_checkpointing": True, "callbacks": [kept]}
    whole, _ = fit(optim, max_steps=16, **options)
    path = tmp_path / "step=8.ckpt"
    rest, trainer = fit(optim, max_steps=16, ckpt_path=str(path), **options)
    assert trainer.global_step == 16
    assert rest.rates == whole.rates[8:]
    assert all(map(torch.equal, weights(rest), weights(whole)))
    assert torch.load(path, weights_only=True)["global_step"] == 8


def test_the_gradients_of_its_closure_are_clipped() -> None:
    optim = {**LINEAR, "clip_grad": 1e-3, "weight_decay": 0.0}
    model, trainer = fit(optim, max_steps=1)
    lightning.seed_everything(0, verbose=False)
    pairs = zip(weights(Recording(LINEAR)), weights(model), strict=True)
    update = torch.cat([(new - old).flatten() for old, new in pairs])
    assert float(update.norm()) == pytest.approx(0.1 * 1e-3, rel=1e-2)
    assert grad_norm(trainer.optimizers[0]) > 0.1


class WithClosure(Regression):
    """Takes a class that calls the closure again and again."""

    def configure_optimizers(self) -> Any:
        if self.optim is None:
            return torch.optim.LBFGS(self.parameters(), lr=0.5)
        return build_optimizer(self, self.optim, provides="closure")


def test_its_closure_is_one_for_classes_that_call_it_again() -> None:
    ours, _ = fit({"optimizer": "LBFGS", "lr": 0.5}, max_steps=2, made=WithClosure)
    plain, _ = fit(None, max_steps=2, made=WithClosure)
    assert all(map(torch.equal, weights(ours), weights(plain)))


class ByHand(Recording):
    """Steps by itself, with what Lightning gives it for an optimizer."""

    def __init__(self, optim: Any) -> None:
        super().__init__(optim)
        self.automatic_optimization = False

    def training_step(self, batch: list[Tensor]) -> Tensor:
        optimizer, scheduler = self.optimizers(), self.lr_schedulers()
        optimizer.zero_grad()
        loss = super().training_step(batch)
        self.manual_backward(loss)
        optimizer.step()
        scheduler.step()
        return loss


@pytest.mark.parametrize("rules", [[], HIDDEN], ids=["one class", "container"])
def test_what_lightning_wraps_is_seen_through(rules: list[Any]) -> None:
    optim = {"lr_scheduler_type": "linear", "clip_grad": 0.5, "param_groups": rules}
    model, trainer = fit(optim, max_steps=3, made=ByHand)
    wrapper, bare = model.optimizers(), trainer.optimizers[0]
    assert wrapper is not bare
    assert isinstance(bare, OptimizersContainer) == bool(rules)
    assert len(model.rates) == 3  # hooks fired once a step
    assert grad_norm(wrapper) == grad_norm(bare) > 0
    assert assignment_report(wrapper) == assignment_report(bare)
    saved, expected = map(optimizer_state_dict, (wrapper, bare))
    assert saved.keys() == expected.keys()
    assert build_lr_scheduler(wrapper, {}).optimizer is bare


def test_what_fabric_wraps_is_seen_through() -> None:
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    model = torch.nn.Linear(4, 2)
    node = {**LINEAR, "total_training_steps": 4, "clip_grad": 0.5}
    bare = build_optimizer(model, node)
    wrapped, optimizer = fabric.setup(model, bare)
    scheduler = build_lr_scheduler(optimizer, node)
    for _ in range(2):
        fabric.backward(wrapped(torch.ones(2, 4)).square().sum())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    assert optimizer is not bare
    assert bare.param_groups[0]["lr"] == pytest.approx(0.05)
    assert grad_norm(optimizer) == grad_norm(bare) > 0
    assert assignment_report(optimizer) == assignment_report(bare)
