"""`clip_grad` of a node with several classes, and of several named modules."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from group_models import VOCABULARY, Perceptron, gpt
from optim_hydra import (
    ConfigError,
    OptimizersContainer,
    build_optimizer,
    build_optimizers,
    grad_norm,
)

LIMIT = 0.1
SGD = {"optimizer": "SGD", "lr": 1.0, "weight_decay": 0.0}
# The lengths of an SGD step at lr 1 are the norms of what it was given.
SEVERAL = {
    **SGD,
    "clip_grad": LIMIT,
    "param_groups": [{"role": "embedding", "optimizer": "Adagrad", "lr": 0.1}],
}
SPARSE = "sparse gradients can't be clipped: set clip_grad=null"
COPIES = [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))]


def loss_of(model: nn.Module) -> Tensor:
    tokens = torch.arange(12).reshape(2, 6) % VOCABULARY
    return nn.functional.cross_entropy(
        model(tokens).flatten(0, 1), tokens.flip(1).flatten()
    )


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {n: p.grad.clone() for n, p in model.named_parameters()}


def reference(model: nn.Module, limit: float = LIMIT) -> tuple[float, dict]:
    """Return torch's norm of all gradients, and what it clips them to."""
    twin = copy.deepcopy(model)
    for own, other in zip(model.parameters(), twin.parameters(), strict=True):
        other.grad = own.grad.clone()
    norm = nn.utils.clip_grad_norm_(twin.parameters(), limit)
    return float(norm), gradients(twin)


def snapshot(*modules: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for m in modules for p in m.parameters()]


def step_length(before: list[Tensor], module: nn.Module) -> float:
    moves = zip(module.parameters(), before, strict=True)
    return float(torch.stack([(p.detach() - b).norm() for p, b in moves]).norm())


def assert_clipped_like_torch(model: nn.Module, optimizer: Optimizer) -> None:
    norm, clipped = reference(model)
    optimizer.step()
    assert norm > LIMIT
    assert grad_norm(optimizer) == pytest.approx(norm, rel=1e-5)
    for name, gradient in gradients(model).items():
        assert torch.allclose(gradient, clipped[name], rtol=1e-5, atol=1e-9), name


def test_one_norm_over_all_classes_clips_them_as_torch_would() -> None:
    model = gpt()
    optimizer = build_optimizer(model, SEVERAL)
    assert optimizer.names == ["SGD", "Adagrad"]
    assert grad_norm(optimizer) is None
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model).backward()
        assert_clipped_like_torch(model, optimizer)
    # The limit is the node's, not that of one of its classes.
    assert [grad_norm(inner) for inner in optimizer] == [None, None]


def test_parameters_without_a_gradient_count_for_nothing() -> None:
    model = gpt()
    optimizer = build_optimizer(model, SEVERAL)
    optimizer.step()
    assert grad_norm(optimizer) == 0.0
    model.lm_head.weight.sum().backward()
    optimizer.step()
    assert grad_norm(optimizer) == pytest.approx(model.lm_head.weight.numel() ** 0.5)


def test_smaller_gradients_of_several_classes_are_left_alone() -> None:
    model = gpt()
    optimizer = build_optimizer(model, {**SEVERAL, "clip_grad": 1e6})
    loss_of(model).backward()
    before = gradients(model)
    optimizer.step()
    after = gradients(model)
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("as_keyword", [False, True])
def test_a_closure_of_several_classes_is_clipped_by_one_norm(as_keyword: bool) -> None:
    model = gpt()
    optimizer = build_optimizer(model, SEVERAL)
    calls = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        calls.append(reference(model))
        return loss

    expected = float(loss_of(model).detach())
    loss = optimizer.step(closure=closure) if as_keyword else optimizer.step(closure)
    assert loss.item() == pytest.approx(expected)
    ((norm, clipped),) = calls
    assert grad_norm(optimizer) == pytest.approx(norm, rel=1e-5)
    for name, gradient in gradients(model).items():
        assert torch.allclose(gradient, clipped[name], rtol=1e-5, atol=1e-9), name


def test_a_class_that_works_with_closures_is_clipped_with_the_others() -> None:
    model = gpt()
    rule = {"role": "head", "optimizer": "LBFGS", "lr": 0.1}
    config = {**SEVERAL, "param_groups": [rule], "lr": 0.01}
    optimizer = build_optimizer(model, config, provides=["closure"])
    seen = []

    def closure() -> Tensor:
        if model.lm_head.weight.grad is not None:
            seen.append(reference(model)[0])
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    assert len(seen) > 2
    assert max(seen) <= LIMIT * 1.001
    for _ in range(5):
        last = optimizer.step(closure).item()
    assert last < first


@pytest.mark.parametrize("fused", [False, True])
def test_a_scaler_leaves_the_norm_of_several_classes_unscaled(fused: bool) -> None:
    model = gpt()
    implementation = "fused" if fused else "for-loop"
    optimizer = build_optimizer(model, {**SEVERAL, "implementation": implementation})
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loss_of(model).backward()
    norm, clipped = reference(model)
    optimizer.zero_grad()
    scaler.scale(loss_of(model)).backward()
    scaler.step(optimizer)
    assert grad_norm(optimizer) == pytest.approx(norm, rel=1e-4)
    for name, gradient in gradients(model).items():
        assert torch.allclose(gradient, clipped[name], rtol=1e-4, atol=1e-7), name


@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])
def test_copies_of_several_classes_clip_too(copied) -> None:
    pair = (model := gpt()), build_optimizer(model, SEVERAL)
    loss_of(model).backward()
    pair[1].step()
    model, optimizer = copied(copied(pair))
    assert isinstance(optimizer, OptimizersContainer)
    optimizer.zero_grad()
    loss_of(model).backward()
    assert_clipped_like_torch(model, optimizer)


def test_sparse_gradients_among_several_classes_are_refused() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(5, 3, sparse=True)
            self.head = nn.Linear(3, 2)

    rule = {"role": "embedding", "optimizer": "SparseAdam"}
    config = {"clip_grad": LIMIT, "param_groups": [rule]}
    with pytest.raises(ConfigError) as caught:
        build_optimizer(Words(), config, provides=["sparse_gradients"])
    assert str(caught.value) == f"{SPARSE} @ clip_grad"
    with pytest.raises(ConfigError) as caught:
        build_optimizers(
            {"actor": Perceptron(), "critic": Words()},
            {"actor": {"clip_grad": LIMIT}, "critic": {**SGD, "clip_grad": LIMIT}},
        )
    assert str(caught.value) == f"{SPARSE} @ critic.clip_grad"


def test_sparse_gradients_of_bare_parameters_are_refused_before_the_step() -> None:
    words, head = nn.Embedding(5, 3, sparse=True), nn.Linear(3, 2)
    named = [("words", words.weight), *head.named_parameters()]
    rule = {"pattern": "head*", "optimizer": "AdamW"}
    named = [("head." + n if n != "words" else n, p) for n, p in named]
    config = {**SGD, "clip_grad": LIMIT, "param_groups": [rule]}
    optimizer = build_optimizer(named, config)
    head(words(torch.tensor([1, 2]))).sum().backward()
    before = snapshot(words, head)
    with pytest.raises(ConfigError) as caught:
        optimizer.step()
    assert str(caught.value) == f"{SPARSE} @ clip_grad"
    after = snapshot(words, head)
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
