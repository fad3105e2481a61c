"""The Trainer of transformers trains with what a node builds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from case_helpers import exact
from optim_hydra import (
    OptimizersContainer,
    build_lr_scheduler,
    build_optimizer,
    grad_norm,
)
from transformers_trainer import Counting, NodeTrainer

PROGRAM = Path(__file__).parents[1] / "examples/interop/transformers_trainer.py"
LINEAR = {"lr": 0.1, "optimizer": "SGD", "lr_scheduler_type": "linear"}
MUON = {"param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}
Made = Callable[..., Trainer]


def tiny() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    sizes = {"vocab_size": 32, "n_positions": 16, "n_embd": 8}
    ends = {"bos_token_id": 0, "eos_token_id": 1}
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, **sizes, **ends))


def trainer_of(node: Any, folder: Path, **options: Any) -> Trainer:
    given = arguments(folder, **options)
    return NodeTrainer(tiny(), given, train_dataset=Counting(), node=node)


def trainer_of_a_pair(node: Any, folder: Path, **options: Any) -> Trainer:
    """Give the Trainer optimizer and schedule, made beforehand."""
    model, given = tiny(), arguments(folder, **options)
    optimizer = build_optimizer(model, node)
    scheduler = build_lr_scheduler(optimizer, node, given.max_steps)
    pair = (optimizer, scheduler)
    return Trainer(model, given, train_dataset=Counting(), optimizers=pair)


def arguments(folder: Path, max_steps: int = 4, **options: Any) -> TrainingArguments:
    return TrainingArguments(
        str(folder),
        max_steps=max_steps,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        logging_steps=1,
        **{"max_grad_norm": 0.0, "save_strategy": "no", **options},
    )


def weights(trainer: Trainer) -> list[Tensor]:
    return [p.detach().clone() for p in trainer.model.parameters()]


def logged(trainer: Trainer, key: str) -> list[float]:
    return [row[key] for row in trainer.state.log_history if key in row]


def loss_after(num: int, printed: str) -> float:
    (loss,) = re.findall(rf"^loss (\S+) after {num} updates", printed, re.MULTILINE)
    return float(loss)


def test_the_example_learns_and_resumes(run_python) -> None:
    whole = run_python(str(PROGRAM))
    assert whole.returncode == 0, whole.stderr
    # Guessing among 32 tokens costs log(32) = 3.47.
    first = loss_after(60, whole.stdout)
    assert first < 1.0
    rest = run_python(str(PROGRAM), "resume=true", "max_steps=80")
    assert rest.returncode == 0, rest.stderr
    assert loss_after(80, rest.stdout) < first


@pytest.mark.parametrize("made", [trainer_of, trainer_of_a_pair])
def test_the_rate_moves_once_an_update(made: Made, tmp_path: Path) -> None:
    trainer = made(LINEAR, tmp_path, gradient_accumulation_steps=2)
    trainer.train()
    assert logged(trainer, "learning_rate") == exact(0.1, 0.075, 0.05, 0.025)


@pytest.mark.parametrize("made", [trainer_of, trainer_of_a_pair])
@pytest.mark.parametrize(
    "fields",
    [{"no_decay": ["bias", "norm"]}, MUON, {"optimizer": "SGD"}],
    ids=["AdamW in groups", "container of Muon and AdamW", "SGD"],
)
def test_a_resumed_run_ends_as_the_whole_run(
    made: Made, fields: dict[str, Any], tmp_path: Path
) -> None:
    node = {"lr": 0.01, "lr_scheduler_type": "cosine", "clip_grad": 0.5, **fields}
    saving = {"save_strategy": "steps", "save_steps": 3}
    whole = made(node, tmp_path, max_steps=6, **saving)
    whole.train()
    rest = made(node, tmp_path, max_steps=6, **saving)
    rest.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert rest.state.global_step == 6
    is_container = isinstance(rest.optimizer.optimizer, OptimizersContainer)
    assert is_container == (fields is MUON)
    assert all(map(torch.equal, weights(rest), weights(whole)))
    rates = logged(whole, "learning_rate")
    assert logged(rest, "learning_rate") == rates
    assert len(set(rates)) == 6


def moved(trainer: Trainer) -> float:
    """Return how far the first update went."""
    before = weights(trainer)
    trainer.train()
    pairs = zip(before, weights(trainer), strict=True)
    return float(torch.cat([(new - old).flatten() for old, new in pairs]).norm())


@pytest.mark.parametrize(
    ("clip_grad", "max_grad_norm", "norm"),
    [(1e-3, 0.0, 1e-3), (None, 1e-3, 1e-3), (1e-3, 1e-3, 1e-3), (2e-3, 1e-3, 1e-3)],
)
def test_gradients_are_clipped_to_the_lower_of_both_limits(
    clip_grad: float | None, max_grad_norm: float, norm: float, tmp_path: Path
) -> None:
    node = {**LINEAR, "weight_decay": 0.0, "clip_grad": clip_grad}
    trainer = trainer_of(node, tmp_path, max_steps=1, max_grad_norm=max_grad_norm)
    assert moved(trainer) == pytest.approx(0.1 * norm, rel=1e-3)
    (told,) = logged(trainer, "grad_norm")
    assert told > 0.1  # before clipping, whoever clips
    own = grad_norm(trainer.optimizer)
    if clip_grad is None:
        assert own is None
    else:
        assert own == pytest.approx(max_grad_norm or told, rel=1e-3)
