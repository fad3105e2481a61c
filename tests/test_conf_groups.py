"""Every group of conf/optim is composed, built and trained; every class is tried."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import ConfigError, build_lr_scheduler, build_optimizer

CONF = Path(__file__).parents[1] / "conf"
GROUPS = sorted(path.stem for path in (CONF / "optim").glob("*.yaml"))
SHIPPED = [
    "adafactor",
    "adam",
    "adamw",
    "adamw_nanogpt",
    "adamw_timm",
    "adamw_transformers",
    "bnb_adamw8bit",
    "lion",
    "muon",
    "nadam",
    "prodigy",
    "radam",
    "rmsprop",
    "schedulefree_adamw",
    "sgd",
    "torchao_adamw",
    "torchao_adamw8bit",
]
# Classes of torch.optim that need more than parameters, and what they ask for.
NEEDS = {
    "LBFGS": "optimizer.step(closure)",
    "Muon": "matrices (2-D parameters) only, not bias (2,)",
    "SparseAdam": "sparse gradients for every parameter",
}
TORCH_CLASSES = sorted(
    name
    for name in dir(torch.optim)
    if isinstance(getattr(torch.optim, name), type) and name != "Optimizer"
)


def train(module: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> float:
    """Fit random targets; return the last loss as a share of the first."""
    torch.manual_seed(1)
    inputs, targets = torch.randn(32, 4), torch.randn(32, 2)
    dtype = next(module.parameters()).dtype
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (module(inputs.to(dtype)) - targets.to(dtype)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses[-1] / losses[0]


def test_the_shipped_groups_are_the_ones_promised() -> None:
    assert GROUPS == SHIPPED


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_composes_builds_and_trains(
    group: str, module: nn.Module, compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    cfg = compose(f"optim@critic.optim={group}")
    net = nn.Sequential(nn.Linear(4, 4), module)
    optimizer = build_optimizer(net, cfg.critic.optim)
    file = OmegaConf.load(CONF / "optim" / f"{group}.yaml")
    own = getattr(optimizer, "optimizers", [optimizer])[0]
    assert type(own).__name__ == file.get("optimizer", "AdamW")
    assert type(own).__module__.startswith(
        file.get("optimizer_impl", "torch.optim").partition(".")[0]
    )
    scheduler = build_lr_scheduler(optimizer, cfg.critic.optim)
    assert train(net, optimizer, 50) < 1.0
    scheduler.step()
    assert all(torch.isfinite(p).all() for p in net.parameters())
    assert cfg.actor.optim.optimizer == "AdamW"


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_file_names_its_package(group: str) -> None:
    text = (CONF / "optim" / f"{group}.yaml").read_text()
    header = text.partition("defaults:")[0]
    package = {
        "bnb_adamw8bit": "bitsandbytes",
        "lion": "lion-pytorch",
        "prodigy": "prodigyopt",
        "schedulefree_adamw": "schedulefree",
        "torchao_adamw": "torchao",
        "torchao_adamw8bit": "torchao",
    }.get(group, "torch")
    assert f"Package: {package}." in header


@pytest.mark.parametrize("name", TORCH_CLASSES)
def test_each_class_of_torch_builds_from_one_override_or_says_what_it_needs(
    name: str, module: nn.Module, compose
) -> None:
    cfg = compose(f"actor.optim.optimizer={name}")
    if name in NEEDS:
        with pytest.raises(ConfigError) as caught:
            build_optimizer(module, cfg.actor.optim)
        assert NEEDS[name] in str(caught.value)
        assert str(caught.value).endswith("@ actor.optim.optimizer")
        return
    optimizer = build_optimizer(module, cfg.actor.optim)
    assert type(optimizer).__name__ == name
    assert train(module, optimizer, 50) < 1.0


def test_there_are_fifteen_classes_in_torch() -> None:
    assert len(TORCH_CLASSES) == 15
    assert set(NEEDS) < set(TORCH_CLASSES)


def test_muon_builds_for_matrices(module: nn.Module) -> None:
    matrices = [(n, p) for n, p in module.named_parameters() if p.ndim == 2]
    optimizer = build_optimizer(matrices, {"optimizer": "Muon", "lr": 0.02})
    assert type(optimizer) is torch.optim.Muon
    assert train(module, optimizer, 3) < 1.0


def test_lbfgs_builds_for_a_loop_that_promises_a_closure(module: nn.Module) -> None:
    config = {"optimizer": "LBFGS", "lr": 1.0}
    optimizer = build_optimizer(module, config, provides=["closure"])
    targets = torch.randn(8, 2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (module(torch.ones(8, 4)) - targets).square().mean()
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    assert closure().item() < first


def test_sparse_adam_builds_for_a_loop_that_promises_sparse_gradients() -> None:
    module = nn.Embedding(7, 4, sparse=True)
    config = {"optimizer": "SparseAdam"}
    optimizer = build_optimizer(module, config, provides=["sparse_gradients"])
    before = module.weight.detach().clone()
    module(torch.tensor([1, 2])).sum().backward()
    optimizer.step()
    assert (module.weight != before).any(dim=1).tolist() == [
        False, True, True, False, False, False, False,
    ]  # fmt: skip


def test_schedule_free_starts_in_train_mode_and_says_what_it_expects(
    module: nn.Module, compose, caplog: pytest.LogCaptureFixture
) -> None:
    cfg = compose("optim@actor.optim=schedulefree_adamw")
    build_optimizer(module, cfg.actor.optim)
    assert caplog.messages == [
        "actor.optim: AdamWScheduleFree expects the training loop to call"
        " optimizer.eval() before evaluating or saving and optimizer.train() before"
        " going on"
    ]
    caplog.clear()
    build_optimizer(module, cfg.actor.optim, provides=["train_eval_modes"])
    assert caplog.messages == []


def test_stochastic_rounding_reaches_torchao(
    compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    torch.manual_seed(0)
    cfg = compose(
        "optim@actor.optim=torchao_adamw",
        "actor.optim.lr=1e-4",
        "actor.optim.weight_decay=0",
    )
    moved = {}
    for rounding in (True, False):
        weight = nn.Parameter(torch.ones(64, 64, dtype=torch.bfloat16))
        cfg.actor.optim.override_optimizer_config.bf16_stochastic_round = rounding
        optimizer = build_optimizer([weight], cfg.actor.optim)
        for _ in range(5):
            weight.grad = torch.ones_like(weight)
            optimizer.step()
        moved[rounding] = int((weight != 1).sum())
    assert moved[False] == 0
    assert moved[True] > 100
