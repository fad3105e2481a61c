"""State that is packed into few tensors is what it was when it is unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.errors import WrongObjectError
from optim_hydra.packed_state import pack, unpacked
from optim_hydra.saved_state import StateError

MUON = {"param_groups": [{"role": "hidden", "ndim": 2, "optimizer": "Muon"}]}
NODES = {
    "AdamW": {"no_decay": ["bias"], "betas": [0.8, 0.9]},
    "SGD": {"optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}},
    "container": MUON,
    "packed by itself": {"optimizer_impl": "torchao.optim", "optimizer": "AdamW8bit"},
    "counts in its groups": {
        "optimizer_impl": "prodigyopt",
        "optimizer": "Prodigy",
        "eps": 1e-8,
    },
}
NUMBERS = (
    st.integers() | st.floats() | st.booleans() | st.none() | st.text("a.", max_size=3)
)
VALUES = NUMBERS | st.lists(NUMBERS, max_size=2) | st.tuples(NUMBERS, NUMBERS)
KEYS = st.sampled_from(["lr", "a.b", "exp_avg"])
NAMES = ["w", "w.bias", "a"]


def trained(config: dict[str, Any]) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = build_optimizer(model, config)
    model(torch.ones(2, 64)).square().mean().backward()
    optimizer.step()
    return model, optimizer


def are_same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return type(first) is type(second) and torch.equal(first, second)
    if isinstance(first, (list, tuple)):
        return type(first) is type(second) and all(map(are_same, first, second))
    # Text tells nan from other numbers, and 0.0 from -0.0 and False.
    return repr(first) == repr(second)


@pytest.mark.parametrize("kind", NODES)
def test_training_goes_on_from_one_packed_file(kind: str, tmp_path: Path) -> None:
    _, optimizer = trained(NODES[kind])
    whole = optimizer_state_dict(optimizer)
    torch.save(optimizer_state_dict(optimizer, packed=True), tmp_path / "state.pt")
    safe = kind != "packed by itself"  # torchao's classes are not torch's own
    saved = torch.load(tmp_path / "state.pt", weights_only=safe)
    _, resumed = trained(NODES[kind])
    report = load_optimizer_state_dict(resumed, saved)
    assert not report.differences
    again = optimizer_state_dict(resumed)
    assert again.keys() == whole.keys()
    if safe:
        assert all(are_same(whole[key], again[key]) for key in whole)


@given(
    entries=st.dictionaries(
        st.tuples(
            st.sampled_from(["state", "param_groups"]), st.sampled_from(NAMES), KEYS
        ),
        VALUES,
    )
)
def test_what_is_unpacked_is_what_was_packed(entries: dict[Any, Any]) -> None:
    state = {".".join(entry): value for entry, value in entries.items()}
    state["lr_schedulers.actor.last_epoch"] = 3
    found = unpacked(pack(state, NAMES))
    assert found.keys() == state.keys()
    assert all(are_same(found[key], state[key]) for key in state)


def test_tensors_of_any_dtype_and_shape_come_back() -> None:
    tensors = [
        torch.tensor(3.0),
        torch.zeros(0, 2),
        torch.arange(6).view(2, 3).t(),
        torch.ones(2, dtype=torch.bfloat16),
        torch.tensor([True]),
        torch.ones(1, 2),
    ]
    names = [f"p{number}" for number in range(len(tensors))]
    state = {f"state.{n}.exp_avg": t for n, t in zip(names, tensors, strict=True)}
    found = unpacked(pack(state, names))
    assert all(are_same(found[key], state[key]) for key in state)


def test_ten_thousand_tensors_are_a_few_items(tmp_path: Path) -> None:
    model = nn.ParameterList(torch.zeros(2) for _ in range(300))
    optimizer = build_optimizer(model, {})
    for parameter in model:
        parameter.grad = torch.ones(2)
    optimizer.step()
    packed = optimizer_state_dict(optimizer, packed=True)
    assert len(packed) == 4  # exp_avg, exp_avg_sq, step and what they are
    torch.save(packed, tmp_path / "packed.pt")
    torch.save(optimizer_state_dict(optimizer), tmp_path / "whole.pt")
    sizes = [(tmp_path / f"{n}.pt").stat().st_size for n in ("packed", "whole")]
    assert sizes[0] < sizes[1] / 5


def test_a_part_of_a_packed_file_is_refused() -> None:
    _, optimizer = trained({})
    packed = optimizer_state_dict(optimizer, packed=True)
    del packed["packed.0"]
    with pytest.raises(StateError) as caught:
        load_optimizer_state_dict(optimizer, packed)
    assert str(caught.value) == (
        "the packed state can't be read (KeyError: 'step'): load the whole file, as"
        " optimizer_state_dict(packed=True) made it"
    )


def test_templates_are_not_packed() -> None:
    _, optimizer = trained({})
    with pytest.raises(WrongObjectError) as caught:
        optimizer_state_dict(optimizer, packed=True, templates=True)
    assert str(caught.value) == (
        "templates are loaded into entry by entry: leave packed out"
    )
