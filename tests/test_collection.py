"""Loading puts garbage collection off, and then leaves it as it was."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

from optim_hydra import (
    build_optimizer,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_load_leaves_garbage_collection_as_it_was(is_enabled: bool) -> None:
    optimizer = build_optimizer(nn.Linear(2, 1), {})
    saved = optimizer_state_dict(optimizer)
    try:
        (gc.enable if is_enabled else gc.disable)()
        load_optimizer_state_dict(optimizer, saved)
        assert gc.isenabled() is is_enabled
        with pytest.raises(StateError):
            load_optimizer_state_dict(
                optimizer, {"state.weight.exp_avg": torch.ones(3)}
            )
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()
