"""The groups named after a peer decay the very parameters that the peer decays.

transformers is asked itself. The rules of nanoGPT and timm are one line each and stand
here as published: nanoGPT is a script, and timm can't be imported beside this torch,
because it imports torchvision, which has no build for it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from case_helpers import Compose
from group_models import gpt, moe, resnet, tied
from optim_hydra import build_optimizer


def layer_norm_of_images() -> nn.Module:
    """Return a model whose norm has a weight and a bias of three dimensions each."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 2, 1), nn.LayerNorm([2, 4, 4]))


def nanogpt(model: nn.Module) -> set[str]:
    return {name for name, p in model.named_parameters() if p.dim() >= 2}


def timm(model: nn.Module) -> set[str]:
    return {
        name
        for name, p in model.named_parameters()
        if not (p.ndim <= 1 or name.endswith(".bias"))
    }


def transformers(model: nn.Module) -> set[str]:
    from transformers import Trainer  # noqa: PLC0415 - takes seconds

    # The method reads nothing of its Trainer, whose making would need a data set.
    decayed = set(Trainer.get_decay_parameter_names(None, model))
    # As in Trainer.create_optimizer: a tied parameter goes by its first name.
    return {name for name, _ in model.named_parameters() if name in decayed}


PEERS = [nanogpt, timm, transformers]
MODELS = [gpt, resnet, moe, tied, layer_norm_of_images]


def decayed_by_group(compose: Compose, peer: str, model: nn.Module) -> set[str]:
    cfg = compose(f"optim@actor.optim=adamw_{peer}")
    optimizer = build_optimizer(model, cfg.actor.optim)
    assert type(optimizer) is torch.optim.AdamW
    names = [name for group in optimizer.param_groups for name in group["param_names"]]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    decays = {group["weight_decay"] for group in optimizer.param_groups}
    assert decays == {0.0, cfg.actor.optim.weight_decay}
    return {
        name
        for group in optimizer.param_groups
        if group["weight_decay"] > 0
        for name in group["param_names"]
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.__name__)
def test_a_group_decays_what_its_peer_decays(
    peer: Callable[[nn.Module], set[str]],
    model: Callable[[], nn.Module],
    compose: Compose,
) -> None:
    expected = peer(model())
    assert expected
    assert decayed_by_group(compose, peer.__name__, model()) == expected


def test_the_peers_disagree_about_norms_and_large_biases() -> None:
    norms = {
        name
        for name, p in resnet().named_parameters()
        if p.ndim == 1 and name.endswith("weight")
    }
    assert nanogpt(resnet()) == timm(resnet()) == transformers(resnet()) - norms
    assert norms < transformers(resnet())
    assert transformers(moe()) - nanogpt(moe()) == {"ln_f.weight"}
    images = layer_norm_of_images()
    assert nanogpt(images) == {"0.weight", "1.weight", "1.bias"}
    assert timm(images) == {"0.weight", "1.weight"}
    assert transformers(images) == {"0.weight"}


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.__name__)
def test_every_peer_decays_embeddings_and_a_tied_head_once(
    peer: Callable[[nn.Module], set[str]], compose: Compose
) -> None:
    decayed = decayed_by_group(compose, peer.__name__, tied())
    assert {"token_embedding.weight", "position_embedding.weight"} < decayed
    assert "lm_head.weight" not in decayed


@pytest.mark.parametrize(
    ("peer", "lr", "weight_decay", "betas"),
    [
        ("nanogpt", 6e-4, 0.1, [0.9, 0.95]),
        ("timm", 1e-3, 0.05, [0.9, 0.999]),
        ("transformers", 5e-5, 0.01, [0.9, 0.999]),
    ],
)
def test_a_group_has_the_values_of_its_peer(
    peer: str, lr: float, weight_decay: float, betas: list[float], compose: Compose
) -> None:
    optim = compose(f"optim@actor.optim=adamw_{peer}").actor.optim
    assert (optim.lr, optim.weight_decay) == (lr, weight_decay)
    assert list(optim.betas) == betas
    for group in build_optimizer(gpt(), optim).param_groups:
        assert group["betas"] == tuple(betas)
