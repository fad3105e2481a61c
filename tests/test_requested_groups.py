"""Groups that users of verl and torchtitan have asked for, each by its config."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from case_helpers import Compose, names_by, train_once, values_of
from group_models import gpt, lora, moe
from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    build_optimizers,
    grad_norm,
)
from wrapped_models import three_layers


def test_lora_plus_has_one_rate_for_b_and_one_for_a(compose: Compose) -> None:
    config = compose(
        "actor.optim.lr=2e-4",
        "actor.optim.param_groups=[{pattern: '*.lora_B.*', lr_mult: 16}]",
    )
    model = lora()
    found = values_of(build_optimizer(model, config.actor.optim), "lr")
    rates = {name.split(".")[3]: lr for name, lr in found.items()}
    assert rates == {"lora_A": 2e-4, "lora_B": 3.2e-3}
    assert found.keys() == {n for n, p in model.named_parameters() if p.requires_grad}


def test_routers_have_a_rate_and_a_decay_of_their_own(compose: Compose) -> None:
    rule = "{pattern: '*.router.*', lr_mult: 0.1, weight_decay_mult: 0}"
    config = compose(f"actor.optim.param_groups=[{rule}]")
    found = names_by(build_optimizer(moe(), config.actor.optim), "lr", "weight_decay")
    assert found[1e-4, 0.0] == [
        f"blocks.{index}.moe.router.{name}"
        for index in range(2)
        for name in ("weight", "bias")
    ]
    assert found.keys() == {(1e-3, 0.01), (1e-4, 0.0)}


def vision_language_model() -> nn.Module:
    from transformers import (  # noqa: PLC0415 - takes seconds
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
    )

    size = {"hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2}
    vision = CLIPVisionConfig(**size, num_hidden_layers=1, image_size=8, patch_size=4)
    text = LlamaConfig(
        **size, num_hidden_layers=1, num_key_value_heads=2, vocab_size=16
    )
    torch.manual_seed(0)
    return LlavaForConditionalGeneration(
        LlavaConfig(vision_config=vision, text_config=text)
    )


def test_a_vision_tower_has_its_rate_and_may_be_frozen(compose: Compose) -> None:
    model = vision_language_model()
    towers = {n for n, _ in model.named_parameters() if ".vision_tower." in n}
    rest = {n for n, _ in model.named_parameters()} - towers
    config = compose(
        "actor.optim.param_groups=[{pattern: '*.vision_tower.*', lr: 2e-6}]"
    )
    found = names_by(build_optimizer(model, config.actor.optim), "lr")
    assert {lr: set(names) for lr, names in found.items()} == {1e-3: rest, 2e-6: towers}
    freeze = "{pattern: '*.vision_tower.*', freeze: true}"
    config = compose(f"actor.optim.param_groups=[{freeze}]")
    assert values_of(build_optimizer(model, config.actor.optim), "lr").keys() == rest
    assert not any(p.requires_grad for n, p in model.named_parameters() if n in towers)


def test_norms_embeddings_and_the_output_are_not_decayed(compose: Compose) -> None:
    config = compose(
        "actor.optim.weight_decay=0.1",
        "actor.optim.no_decay=[norm,embedding]",
        "actor.optim.param_groups=[{role: head, weight_decay: 0}]",
    )
    names = names_by(build_optimizer(gpt(), config.actor.optim), "weight_decay")
    marks = ("embedding", "ln_", "lm_head")
    for decay, expected in ((0.0, True), (0.1, False)):
        assert {any(mark in name for mark in marks) for name in names[decay]} == {
            expected
        }


def test_rates_and_decays_are_multiplied_by_role(compose: Compose) -> None:
    rules = (
        "[{pattern: '*.attention.*', lr_mult: 0.5},"
        " {role: norm, lr_mult: 2, weight_decay_mult: 0},"
        " {role: embedding, lr_mult: 0.25, weight_decay_mult: 0.1}]"
    )
    config = compose(f"actor.optim.param_groups={rules}", "actor.optim.weight_decay=1")
    found = values_of(build_optimizer(gpt(), config.actor.optim), "lr", "weight_decay")
    assert found["blocks.1.attention.qkv.bias"] == (5e-4, 1.0)
    assert found["blocks.0.ln_2.weight"] == found["ln_f.bias"] == (2e-3, 0.0)
    assert found["position_embedding.weight"] == (2.5e-4, 0.1)
    assert found["lm_head.weight"] == found["blocks.0.mlp.0.bias"] == (1e-3, 1.0)


def test_muon_and_adamw_train_one_module(compose: Compose) -> None:
    overrides = ["optim@actor.optim=muon", "actor.optim.param_groups.0.lr=0.02"]
    schedule = ["lr_scheduler_type=wsd", "total_training_steps=4"]
    optim = compose(*overrides, *(f"actor.optim.{s}" for s in schedule)).actor.optim
    model = gpt()
    container = build_optimizer(model, optim)
    scheduler = build_lr_scheduler(container, optim)
    names = list(values_of(container["Muon"], "lr"))
    assert len(names) == 8
    assert all(name.startswith("blocks.") for name in names)
    losses = []
    for _ in range(4):
        container.zero_grad()
        tokens = torch.arange(6).repeat(2, 1)
        loss = nn.functional.cross_entropy(
            model(tokens).flatten(0, 1), tokens.flatten()
        )
        loss.backward()
        container.step()
        scheduler.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_a_third_module_has_an_optimizer_of_its_own(compose: Compose) -> None:
    config = compose("+optim@reward.optim=sgd", "reward.optim.lr=0.5")
    models = {name: three_layers() for name in ("actor", "critic", "reward")}
    container = build_optimizers(models, config)
    assert [type(inner).__name__ for inner in container] == ["AdamW", "AdamW", "SGD"]
    assert set(values_of(container["reward"], "lr").values()) == {0.5}
    train_once(container, *models.values())


def test_every_part_clips_by_a_limit_of_its_own(compose: Compose) -> None:
    config = compose(
        "optim@actor.optim=sgd",
        "optim@critic.optim=sgd",
        "actor.optim.clip_grad=0.1",
        "critic.optim.clip_grad=0.2",
    )
    models = {name: three_layers() for name in ("actor", "critic")}
    container = build_optimizers(models, config)
    train_once(container, *models.values())
    for name, limit in (("actor", 0.1), ("critic", 0.2)):
        gradients = [parameter.grad for parameter in models[name].parameters()]
        left = float(nn.utils.get_total_norm(gradients))
        assert left == pytest.approx(limit, rel=1e-4)
        assert grad_norm(container[name]) > 3.0
