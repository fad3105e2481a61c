"""Training goes on bit for bit after a restart, with each class of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from optim_hydra import (
    OptimizersContainer,
    build_optimizer,
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import (
    FORMS,
    assert_resumes,
    bits,
    layers,
    through_file,
    train,
)

NAMES = [
    name
    for name, value in vars(torch.optim).items()
    if isinstance(value, type) and issubclass(value, torch.optim.Optimizer)
]
CLASSES = sorted(set(NAMES) - {"Optimizer", "SparseAdam", "Muon"})
OPTIONS = {
    "momentum": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "dampening": ("SGD", {"momentum": 0.9, "dampening": 0.5, "maximize": True}),
    "amsgrad": ("AdamW", {"amsgrad": True}),
    "centered": ("RMSprop", {"centered": True, "momentum": 0.9}),
    "history": ("LBFGS", {"history_size": 2, "line_search_fn": "strong_wolfe"}),
    "accumulator": ("Adagrad", {"initial_accumulator_value": 0.1, "lr_decay": 0.1}),
    "decoupled": ("NAdam", {"decoupled_weight_decay": True}),
}
COSINE = {
    "lr_scheduler_type": "cosine",
    "lr_warmup_steps": 2,
    "total_training_steps": 8,
}
MUON = {"role": "hidden", "ndim": 2, "optimizer": "Muon", "lr": 0.02}


def matrices() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6, bias=False), nn.Linear(6, 2, bias=False))


def words() -> nn.Module:
    torch.manual_seed(0)
    return nn.Embedding(10, 4, sparse=True)


def tokens() -> Tensor:
    return torch.randint(10, (8,))


class Pair(nn.Module):
    """An actor and a critic on the same observations."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.actor, self.critic = layers(), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.actor(x), self.critic(x)], dim=1)

    def modules_by_name(self) -> dict[str, nn.Module]:
        return {"actor": self.actor, "critic": self.critic}


@pytest.mark.parametrize("optimizer", CLASSES)
def test_a_class_goes_on_as_if_nothing_had_happened(
    optimizer: str, tmp_path: Path
) -> None:
    resumed = assert_resumes(layers, {"optimizer": optimizer}, tmp_path)
    assert type(resumed).__name__ == optimizer


def test_muon_goes_on_with_matrices(tmp_path: Path) -> None:
    assert_resumes(matrices, {"optimizer": "Muon"}, tmp_path)


def test_sparse_adam_goes_on_with_sparse_gradients(tmp_path: Path) -> None:
    resumed = assert_resumes(words, {"optimizer": "SparseAdam"}, tmp_path, tokens)
    assert all(p.grad.is_sparse for g in resumed.param_groups for p in g["params"])


@pytest.mark.parametrize("option", list(OPTIONS))
def test_a_class_with_options_goes_on(option: str, tmp_path: Path) -> None:
    optimizer, extra = OPTIONS[option]
    config = {"optimizer": optimizer, "override_optimizer_config": extra}
    assert_resumes(layers, config, tmp_path)


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "SGD", "Adagrad"])
@pytest.mark.parametrize("implementation", ["fused", "foreach", "for-loop"])
def test_an_implementation_goes_on(
    implementation: str, optimizer: str, tmp_path: Path
) -> None:
    config = {"optimizer": optimizer, "implementation": implementation}
    assert_resumes(layers, config, tmp_path)


@pytest.mark.parametrize("form", ["torch", "nested", "flattened"])
@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "ASGD", "NAdam", "Rprop"])
def test_what_torch_saved_goes_on(optimizer: str, form: str, tmp_path: Path) -> None:
    config = {"optimizer": optimizer}
    module, twin = layers(), layers()
    first = build_optimizer(module, config)
    train(module, first, range(3))
    state = {"m": module.state_dict(), "o": FORMS[form](module, first)}
    saved = through_file(state, tmp_path)
    twin.load_state_dict(saved["m"])
    resumed = build_optimizer(twin, config)
    load_optimizer_state_dict(resumed, saved["o"])
    train(module, first, range(3, 6))
    train(twin, resumed, range(3, 6))
    assert bits(list(twin.parameters())) == bits(list(module.parameters()))
    assert bits(optimizer_state_dict(resumed)) == bits(optimizer_state_dict(first))


@pytest.mark.parametrize("clip_grad", [None, 0.1])
def test_muon_and_adamw_go_on_together(clip_grad: float, tmp_path: Path) -> None:
    config = {"param_groups": [MUON], "no_decay": ["1d"], "clip_grad": clip_grad}
    resumed = assert_resumes(layers, config, tmp_path)
    assert isinstance(resumed, OptimizersContainer)
    assert resumed.names == ["AdamW", "Muon"]


@pytest.mark.parametrize("policy", ["config", "checkpoint", "strict"])
def test_an_actor_and_a_critic_go_on_with_their_schedules(
    policy: str, tmp_path: Path
) -> None:
    actor = {"param_groups": [MUON], "on_resume": policy, **COSINE}
    critic = {
        "optimizer": "SGD",
        "lr": 0.1,
        "override_optimizer_config": {"momentum": 0.9},
        "on_resume": policy,
        "lr_scheduler_type": "linear",
        "total_training_steps": 7,
    }
    config: dict[str, Any] = {"actor": actor, "critic": critic}
    pair, twin = Pair(), Pair()
    first = build_optimizers(pair.modules_by_name(), config)
    train(pair, first, range(3))
    state = {"model": pair.state_dict(), "optim": first.state_dict()}
    saved = through_file(state, tmp_path)
    train(pair, first, range(3, 6))

    twin.load_state_dict(saved["model"])
    resumed = build_optimizers(twin.modules_by_name(), config)
    resumed.load_state_dict(saved["optim"])
    train(twin, resumed, range(3, 6))
    assert bits(list(twin.parameters())) == bits(list(pair.parameters()))
    assert bits(resumed.state_dict()) == bits(first.state_dict())
    assert resumed.lr_schedulers["critic"].last_epoch == 6
