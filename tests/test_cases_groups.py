"""Groups with and without weight decay, as public bug reports met them.

Cases: B34.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from case_helpers import Compose, names_by, refused, values_of
from group_models import RMSNorm
from optim_hydra import build_optimizer
from wrapped_models import WRAPPERS, parametrized, three_layers

NO_DECAY = """\
actor:
  optim:
    weight_decay: 0.1
    no_decay: [bias, norm]
"""
MATRICES = ["0.weight", "2.weight"]
VECTORS = ["0.bias", "1.weight", "1.bias", "2.bias"]


def test_B34_biases_and_norm_weights_are_not_decayed(compose: Compose) -> None:
    optimizer = build_optimizer(three_layers(), compose(yaml=NO_DECAY).actor.optim)
    assert names_by(optimizer, "weight_decay") == {0.1: MATRICES, 0.0: VECTORS}
    numbers = [sum(p.numel() for p in g["params"]) for g in optimizer.param_groups]
    assert numbers == [24, 14]


def test_B34_without_the_option_there_is_one_group(compose: Compose) -> None:
    config = compose("actor.optim.no_decay=[]", yaml=NO_DECAY)
    (group,) = build_optimizer(three_layers(), config.actor.optim).param_groups
    names = [name for name, _ in three_layers().named_parameters()]
    assert (group["weight_decay"], group["param_names"]) == (0.1, names)


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_B34_kin_wrapped_models(wrap: Any, one_process: None, compose: Compose) -> None:
    optim = compose(yaml=NO_DECAY).actor.optim
    optimizer = build_optimizer(wrap(three_layers()), optim)
    assert names_by(optimizer, "weight_decay") == {0.1: MATRICES, 0.0: VECTORS}


class GatedNorm(nn.LayerNorm):
    """A norm of somebody's own with a further parameter."""

    def __init__(self) -> None:
        super().__init__(4)
        self.gate = nn.Parameter(torch.ones(()))


OTHER_MODELS = {
    "attention": (nn.MultiheadAttention(4, 2), ["in_proj_bias", "out_proj.bias"]),
    "lstm": (nn.LSTM(4, 3), ["bias_ih_l0", "bias_hh_l0"]),
    "norms_of_images": (
        nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.GroupNorm(2, 4)),
        ["0.bias", "1.weight", "1.bias", "2.weight", "2.bias"],
    ),
    "own_norms": (
        nn.Sequential(RMSNorm(), GatedNorm(), nn.Linear(4, 2, bias=False)),
        ["0.weight", "1.weight", "1.bias", "1.gate"],
    ),
    "slope_of_prelu": (nn.Sequential(nn.Bilinear(2, 2, 2), nn.PReLU(2)), ["0.bias"]),
    "weight_norm": (
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)),
        ["bias"],
    ),
}


@pytest.mark.parametrize(("model", "expected"), OTHER_MODELS.values(), ids=OTHER_MODELS)
def test_B34_kin_other_modules(
    model: nn.Module, expected: list[str], compose: Compose
) -> None:
    optimizer = build_optimizer(model, compose(yaml=NO_DECAY).actor.optim)
    assert names_by(optimizer, "weight_decay")[0.0] == expected


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        (parametrized(nn.Linear(4, 4), "bias"), "0.parametrizations.bias.original"),
        (
            parametrized(nn.LayerNorm(4), "weight"),
            "0.parametrizations.weight.original",
        ),
        (
            nn.utils.parametrizations.spectral_norm(nn.Embedding(4, 4)),
            "0.parametrizations.weight.original",
        ),
    ],
    ids=["bias", "norm", "embedding"],
)
def test_B34_kin_a_parametrized_module_stays_what_it_is(
    child: nn.Module, expected: str
) -> None:
    config = {"weight_decay": 0.1, "no_decay": ["bias", "norm", "embedding"]}
    optimizer = build_optimizer(nn.Sequential(child, nn.Linear(4, 2)), config)
    assert values_of(optimizer, "weight_decay")[expected] == 0.0


@pytest.mark.filterwarnings("ignore:FSDP is switching:UserWarning")
@pytest.mark.parametrize("role", ["norm", "1d"])
def test_B34_kin_a_flat_parameter_can_not_be_split(
    role: str, one_process: None
) -> None:
    model = FullyShardedDataParallel(
        three_layers(), use_orig_params=False, device_id=torch.device("cpu")
    )
    error = refused(model, {"weight_decay": 0.1, "no_decay": [role]})
    assert "leaves pieces of flattened parameters" in str(error)
    assert str(error).endswith("@ no_decay")


def test_B34_kin_a_class_without_decay_is_refused(compose: Compose) -> None:
    config = compose("actor.optim.optimizer=Rprop", "actor.optim.no_decay=[bias]")
    assert str(refused(three_layers(), config.actor.optim)) == (
        "Rprop takes no weight_decay: no_decay has no effect @ actor.optim.no_decay"
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda model: model,
        lambda model: model.parameters(),
        lambda model: model.named_parameters(),
        lambda model: [{"params": list(model.named_parameters()), "lr": 0.1}],
    ],
    ids=["module", "parameters", "pairs", "groups"],
)
def test_B34_kin_a_plain_node_makes_one_group_of_what_it_is_given(read: Any) -> None:
    plain = {"_target_": "torch.optim.SGD", "lr": 0.1}
    (group,) = build_optimizer(read(three_layers()), plain).param_groups
    assert (len(group["params"]), group["lr"]) == (6, 0.1)
