"""`implementation: fastest` is one of the class's own flags, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from optim_hydra import ConfigError, build_optimizer

FASTEST = {"implementation": "fastest"}


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1))


def flags(optimizer: torch.optim.Optimizer) -> list[tuple[Any, Any]]:
    groups = optimizer.param_groups
    return [(group.get("foreach"), group.get("fused")) for group in groups]


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        ("Adam", (None, True)),
        ("AdamW", (None, True)),
        ("SGD", (None, True)),
        ("Adagrad", (None, True)),
        ("RMSprop", (True, None)),
        ("NAdam", (True, None)),
        ("Adadelta", (True, None)),
        ("LBFGS", (None, None)),
    ],
)
def test_the_flag_is_one_that_the_class_has(cls: str, expected: Any) -> None:
    extra = {"provides": "closure"} if cls == "LBFGS" else {}
    optimizer = build_optimizer(small(), {"optimizer": cls, **FASTEST}, **extra)
    assert flags(optimizer) == [expected]


def test_large_tensors_are_left_to_the_loop() -> None:
    config = {"optimizer": "RMSprop", **FASTEST}
    assert flags(build_optimizer(nn.Linear(300, 300), config)) == [(None, None)]


def test_each_class_of_the_rules_has_its_own() -> None:
    rules = [{"ndim": 2, "optimizer": "RMSprop"}, {"pattern": "1.bias", "lr": 0.1}]
    container = build_optimizer(small(), {**FASTEST, "param_groups": rules})
    assert flags(container["RMSprop"]) == [(True, None)]
    assert flags(container["AdamW"]) == [(None, True)] * 2


@pytest.mark.parametrize(
    "module",
    [nn.Embedding(3, 2, sparse=True), nn.Linear(2, 2, dtype=torch.complex64)],
    ids=["sparse", "complex"],
)
def test_what_fused_cant_do_is_not_asked_of_it(module: nn.Module) -> None:
    config = {"optimizer": "SGD", "weight_decay": 0.0, **FASTEST}
    optimizer = build_optimizer(module, config)
    assert not optimizer.param_groups[0]["fused"]
    index = torch.tensor([1]) if isinstance(module, nn.Embedding) else None
    out = module(torch.ones(1, 2, dtype=torch.complex64) if index is None else index)
    out.abs().sum().backward()
    optimizer.step()


def test_a_flag_beside_it_is_refused() -> None:
    config = {**FASTEST, "override_optimizer_config": {"foreach": False}}
    with pytest.raises(ConfigError) as caught:
        build_optimizer(small(), config)
    assert str(caught.value) == (
        "foreach is set here and by implementation: keep one of them"
        " @ override_optimizer_config.foreach"
    )


def test_the_log_says_what_was_chosen(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "optim_hydra"):
        build_optimizer(small(), FASTEST)
    assert "'fused': True}, the fastest implementation is fused=True\n" in caplog.text


def test_the_log_says_where_there_was_no_choice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "optim_hydra"):
        build_optimizer(small(), {"optimizer": "LBFGS", **FASTEST}, provides="closure")
        build_optimizer(nn.Linear(300, 300), {"optimizer": "RMSprop", **FASTEST})
    first, second = [record.getMessage() for record in caplog.records]
    only = "{'lr': 0.001}, the fastest implementation is the only one that it has\n"
    assert first.startswith(f"optim: LBFGS {only}")
    assert "}, the fastest implementation is its own choice\n" in second


@pytest.mark.parametrize("cls", ["AdamW", "SGD", "RMSprop"])
def test_it_trains_as_the_loop_does(cls: str) -> None:
    results = []
    for implementation in ("fastest", "for-loop"):
        module = small()
        config = {"optimizer": cls, "lr": 0.01, "implementation": implementation}
        optimizer = build_optimizer(module, config)
        for _ in range(5):
            optimizer.zero_grad()
            module(torch.ones(3, 4)).square().sum().backward()
            optimizer.step()
        results.append(torch.cat([p.detach().flatten() for p in module.parameters()]))
    torch.testing.assert_close(*results)
