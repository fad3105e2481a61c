"""The memory that is foretold on the meta device is that of really built state."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer
from torch.testing._internal.distributed.fake_pg import FakeStore

from optim_hydra import build_optimizer
from optim_hydra.needs import PROTOCOLS
from optim_hydra.state_memory import StateMemory, measure_state, state_bytes

# Bytes of state for one float32 number of a matrix, where the whole is simple enough
# to be said by hand; what is kept for each tensor comes on top.
TORCH = {
    "ASGD": 4,
    "Adadelta": 8,
    "Adafactor": None,
    "Adagrad": 4,
    "Adam": 8,
    "AdamW": 8,
    "Adamax": 8,
    "NAdam": 8,
    "RAdam": 8,
    "RMSprop": 4,
    "Rprop": 8,
    "SGD": 0,
}
TORCHAO = {
    # Codes, a float32 scale for each block, and for each moment a table of its own.
    "AdamW8bit": 2 * (1 + 4 / 256) + 2 * 4 * 256 / 4096,
    "AdamW4bit": 2 * (1 / 2 + 4 / 128) + 2 * 4 * 16 / 4096,
    "AdamWFp8": 2 * (1 + 4 / 256),
    "_AdamW": 8,
}
BITSANDBYTES = {
    "AdEMAMix": 12,
    "AdEMAMix8bit": None,
    "Adagrad8bit": None,
    "Adam": 8,
    "AdamW8bit": None,
    "LAMB": 8,
    "Lion8bit": None,
    "PagedAdamW8bit": None,
    "RMSprop8bit": None,
}
MODULES = {"torch.optim": TORCH, "torchao.optim": TORCHAO}
MODULES["bitsandbytes.optim"] = BITSANDBYTES
# It keeps nothing of its start where a parameter is zero, so numbers are needed.
MODULES["prodigyopt"] = {"Prodigy": 16}


@pytest.fixture(autouse=True)
def _without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")


def mixed() -> nn.Module:
    """Return matrices below, at and above 4096 numbers, and vectors."""
    sizes = [(4, 64), (64, 64), (64, 80)]
    layers = [nn.Linear(*size) for size in sizes]
    norm = nn.LayerNorm(80)
    nn.init.ones_(norm.bias)  # see Prodigy above
    return nn.Sequential(*layers, norm)


def node(impl: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"optimizer_impl": impl, "optimizer": name, **fields}


def built(module: nn.Module, config: dict[str, Any]) -> Optimizer:
    return build_optimizer(module, config, provides=PROTOCOLS)


def foretold(
    make: Any, config: dict[str, Any], world_size: int = 1, dtype: Any = None
) -> StateMemory:
    with torch.device("meta"):
        module = make().to(dtype)
    return measure_state(built(module, config), world_size)


def step(optimizer: Optimizer) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def really_kept(module: nn.Module, config: dict[str, Any]) -> int:
    optimizer = built(module, config)
    step(optimizer)
    after_one = state_bytes(optimizer)
    step(optimizer)
    assert state_bytes(optimizer) == after_one
    return after_one


@pytest.mark.parametrize("impl", list(MODULES))
def test_memory_is_that_of_really_built_state(impl: str) -> None:
    configs = {name: node(impl, name) for name in MODULES[impl]}
    memory = {name: foretold(mixed, config) for name, config in configs.items()}
    kept = {name: really_kept(mixed(), config) for name, config in configs.items()}
    assert {name: each.num_bytes for name, each in memory.items()} == kept
    numbers = sum(p.numel() for p in mixed().parameters())
    assert {each.num_parameters for each in memory.values()} == {numbers}


@pytest.mark.parametrize("impl", list(MODULES))
def test_memory_of_a_matrix_is_what_one_works_out_by_hand(impl: str) -> None:
    for name, each in MODULES[impl].items():
        if each is not None:
            memory = foretold(lambda: nn.Linear(64, 64, bias=False), node(impl, name))
            # Beside it there are a few single numbers, such as the step.
            assert memory.num_bytes is not None
            assert 0 <= memory.num_bytes - 4096 * each <= 20, name


@pytest.mark.parametrize("numbers", [4095, 4096, 4097])
def test_bitsandbytes_keeps_8_bits_from_4096_numbers_on(numbers: int) -> None:
    config = node("bitsandbytes.optim", "AdamW8bit")
    make = lambda: nn.Linear(numbers, 1, bias=False)  # noqa: E731 - two models alike
    blocks = -(-numbers // 256)
    tables = 2 * 4 * 256
    eight_bits = 2 * (numbers + 4 * blocks) + tables
    expected = 2 * 4 * numbers if numbers < 4096 else eight_bits
    assert foretold(make, config).num_bytes == expected
    assert really_kept(make(), config) == expected


def test_bitsandbytes_tables_are_counted_once() -> None:
    config = node("bitsandbytes.optim", "AdamW8bit")
    make = lambda: nn.Sequential(  # noqa: E731 - two models alike
        nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)
    )
    expected = 2 * 2 * (4096 + 4 * 16) + 2 * 4 * 256
    assert foretold(make, config).num_bytes == expected == really_kept(make(), config)


def test_state_of_bf16_parameters_is_half() -> None:
    config = node("torch.optim", "AdamW")
    memory = foretold(mixed, config, dtype=torch.bfloat16)
    assert memory.num_bytes == really_kept(mixed().to(torch.bfloat16), config)


def test_a_wrapper_and_several_classes_are_counted_whole() -> None:
    extra = {"optimizer": {"optimizer": "AdamW"}}
    lookahead = node("pytorch_optimizer", "Lookahead", override_optimizer_config=extra)
    muon = {"param_groups": [{"pattern": "1.weight", "optimizer": "Muon"}]}
    for config in (lookahead, muon):
        assert foretold(mixed, config).num_bytes == really_kept(mixed(), config)


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_memory_of_rank_0_is_that_of_its_shards(ranks: int) -> None:
    classes = [("torch.optim", "AdamW"), ("torch.optim", "Adagrad")]
    classes.append(("torchao.optim", "AdamW8bit"))
    torch.distributed.init_process_group(
        "fake", store=FakeStore(), rank=0, world_size=ranks
    )
    kept = []
    try:
        for impl, name in classes:
            module = mixed()
            fully_shard(module, mesh=init_device_mesh("cpu", (ranks,)))
            kept.append(really_kept(module, node(impl, name)))
    finally:
        torch.distributed.destroy_process_group()
    memory = [foretold(mixed, node(*names), ranks).num_bytes for names in classes]
    assert memory == kept


def test_what_can_not_be_foretold_is_said() -> None:
    lbfgs = foretold(mixed, node("torch.optim", "LBFGS"))
    assert lbfgs == StateMemory(
        9840, None, "it grows with the losses that the closure returns"
    )
    assert lbfgs.per_parameter is None
    sparse = foretold(mixed, node("torch.optim", "SparseAdam"))
    assert sparse.reason == (
        "its step fails (RuntimeError: SparseAdam does not support dense gradients,"
        " please consider Adam instead)"
    )
    make = lambda: nn.Linear(8000, 8000, bias=False)  # noqa: E731 - of 256 MB
    large = foretold(make, node("torch.optim", "Adafactor"))
    assert large.num_bytes is None
    assert large.reason.endswith(
        "and its state is only allocated to be counted up to 32,000,000 numbers"
    )


def test_a_large_model_takes_no_memory() -> None:
    make = lambda: nn.Linear(100_000, 100_000, bias=False)  # noqa: E731 - of 40 GB
    memory = foretold(make, node("torch.optim", "AdamW"), world_size=8)
    assert memory.num_parameters == 1_250_000_000
    assert memory.num_bytes == 8 * 1_250_000_000 + 4
