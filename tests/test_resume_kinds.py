"""State of torch's own form is checked as this library's is: class, keys, kinds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from optim_hydra import (
    build_optimizer,
    export_optimizer_state_dict,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from saved_training import kept_for, refused_load, trained

State = dict[str, Any]
CLASSES = {
    name: f"{value.__module__}.{name}"
    for name, value in vars(torch.optim).items()
    if isinstance(value, type) and issubclass(value, Optimizer)
    if name not in ("Optimizer", "Muon", "SparseAdam", "LBFGS")
}
FORMS: dict[str, Callable[[Optimizer], State]] = {
    "ours": optimizer_state_dict,
    "native": lambda optimizer: export_optimizer_state_dict(optimizer, "native"),
    "flattened": lambda optimizer: export_optimizer_state_dict(optimizer, "flattened"),
}
FOREIGN = ["native", "flattened"]


def with_kept(saved: State, **values: Any) -> State:
    """Put values into what is kept for the weight, in whatever form it is."""
    changed = copy.deepcopy(saved)
    for key, value in values.items():
        if "state" in changed:
            changed["state"][0][key] = value
        else:
            changed[f"state.weight.{key}"] = value
    return changed


@pytest.mark.parametrize("form", FOREIGN)
@pytest.mark.parametrize("name", list(CLASSES))
def test_state_of_another_class_is_refused_by_both_names(name: str, form: str) -> None:
    saved = FORMS[form](trained(nn.Linear(4, 2), {"optimizer": name}))
    for other, path in CLASSES.items():
        if name == other or {name, other} == {"Adam", "AdamW"}:
            continue
        optimizer = build_optimizer(nn.Linear(4, 2), {"optimizer": other})
        assert refused_load(optimizer, saved) == (
            "3 problems:\n"
            f"  - weight was trained with {CLASSES[name]}, and now with"
            f" {path}\n"
            f"  - bias was trained with {CLASSES[name]}, and now with"
            f" {path}\n"
            "  - to start these without state: missing='fresh'"
        )
        report = load_optimizer_state_dict(optimizer, saved, missing="fresh")
        assert report.fresh == ["weight", "bias"]


def test_whether_decay_is_decoupled_is_told_where_nothing_else_differs() -> None:
    saved = trained(nn.Linear(4, 2), {"optimizer": "Adam"}).state_dict()
    report = load_optimizer_state_dict(build_optimizer(nn.Linear(4, 2), {}), saved)
    assert str(report) == (
        "restored the state of 2 parameters\n"
        "  decoupled_weight_decay: saved False, now True (weight, bias)"
    )


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("key", ["step", "exp_avg", "exp_avg_sq"])
def test_a_key_that_is_missing_is_named(key: str, form: str) -> None:
    saved = FORMS[form](trained(nn.Linear(4, 2), {}))
    if "state" in saved:
        del saved["state"][0][key]
    else:
        del saved[f"state.weight.{key}"]
    message = refused_load(build_optimizer(nn.Linear(4, 2), {}), saved)
    assert message == f"the saved state of weight lacks {key}"


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "NoneType"),
        ("x", "str"),
        ([[0.0] * 4] * 2, "list"),
        (np.zeros((2, 4), dtype=np.float32), "ndarray"),
    ],
)
def test_what_is_no_tensor_is_refused(value: Any, kind: str, form: str) -> None:
    saved = with_kept(FORMS[form](trained(nn.Linear(4, 2), {})), exp_avg=value)
    message = refused_load(build_optimizer(nn.Linear(4, 2), {}), saved)
    assert message == f"exp_avg of weight is of type {kind}, where a tensor is due"


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("shape", [(), (1, 4), (2, 1), (1,)])
def test_a_shape_that_would_be_broadcast_is_refused(
    shape: tuple[int, ...], form: str
) -> None:
    changed = torch.zeros(shape)
    saved = with_kept(FORMS[form](trained(nn.Linear(4, 2), {})), exp_avg=changed)
    message = refused_load(build_optimizer(nn.Linear(4, 2), {}), saved)
    assert message == (
        f"exp_avg of weight was saved with the shape {shape}, where (2, 4) is due"
    )


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.zeros(2, 4, dtype=torch.int64), "torch.int64"),
        (lambda: torch.zeros(2, 4, dtype=torch.bool), "torch.bool"),
        (lambda: torch.zeros(2, 4, dtype=torch.complex64), "torch.complex64"),
        (lambda: torch.zeros(2, 4).to_sparse(), "sparse torch.float32"),
        (
            lambda: torch.quantize_per_tensor(torch.zeros(2, 4), 0.1, 0, torch.qint8),
            "torch.qint8",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_numbers_of_another_kind_are_refused(
    make: Callable[[], Any], kind: str, form: str
) -> None:
    saved = with_kept(FORMS[form](trained(nn.Linear(4, 2), {})), exp_avg=make())
    message = refused_load(build_optimizer(nn.Linear(4, 2), {}), saved)
    assert message == (
        f"exp_avg of weight was saved as {kind}, where torch.float32 is due"
    )


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_a_counter_of_whole_numbers_becomes_what_the_class_counts_in(
    dtype: torch.dtype, form: str
) -> None:
    first = trained(nn.Linear(4, 2), {})
    whole = torch.tensor(2, dtype=dtype)
    resumed = build_optimizer(nn.Linear(4, 2), {})
    load_optimizer_state_dict(resumed, with_kept(FORMS[form](first), step=whole))
    assert kept_for(resumed) == kept_for(first)


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("config", [{}, {"optimizer": "SGD", "strict": False}])
def test_complex_state_fits_no_real_parameter(config: Any, form: str) -> None:
    momentum = {"momentum": 0.9} if "optimizer" in config else {}
    config = {**config, "betas": [0.9, 0.999], "override_optimizer_config": momentum}
    module = nn.Linear(4, 2, dtype=torch.complex64)
    optimizer = build_optimizer(module, config)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    saved = FORMS[form](optimizer)
    key = "momentum_buffer" if momentum else "exp_avg"
    real = build_optimizer(nn.Linear(4, 2), config)
    assert refused_load(real, saved) == (
        "2 problems:\n"
        f"  - {key} of weight was saved as torch.complex64, where torch.float32 is"
        " due\n"
        f"  - {key} of bias was saved as torch.complex64, where torch.float32 is due"
    )


@pytest.mark.parametrize("form", list(FORMS))
def test_state_of_fewer_bits_that_a_step_can_not_use_is_refused(form: str) -> None:
    module = nn.Linear(4, 2, dtype=torch.complex64)
    optimizer = build_optimizer(module, {})
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    twin = build_optimizer(nn.Linear(4, 2, dtype=torch.complex128), {})
    assert refused_load(twin, FORMS[form](optimizer)) == (
        "weight is of torch.complex128 and its saved state of torch.complex64, which"
        " AdamW can't use together"
    )


def test_a_class_of_another_package_is_tried_where_keys_are_missing() -> None:
    config = {"optimizer_impl": "pytorch_optimizer", "optimizer": "Lamb"}
    saved = trained(nn.Linear(4, 2), config).state_dict()
    load_optimizer_state_dict(build_optimizer(nn.Linear(4, 2), config), saved)
    del saved["state"][0]["exp_avg_sq"]
    message = refused_load(build_optimizer(nn.Linear(4, 2), config), saved)
    assert message == (
        "the saved state of weight lacks exp_avg_sq, and Lamb can't go on without"
    )
