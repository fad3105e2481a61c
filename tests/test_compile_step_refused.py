"""Where compiling a step helps nothing, it is refused before anything is built."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from case_helpers import refused
from optim_hydra import ConfigError, ParamGroupConfig, build_optimizer

AT = "set compile_step=false @ actor.optim.compile_step"
FUSED_BIAS = {
    "role": "bias",
    "override_optimizer_config": {"fused": True},
    "weight_decay": 0.0,
}
LOOKAHEAD = {
    "optimizer_impl": "pytorch_optimizer",
    "optimizer": "Lookahead",
    "override_optimizer_config": {"optimizer": {"optimizer": "AdamW"}},
}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"implementation": "fused"},
            "fused is compiled code already: leave it out, or",
        ),
        (
            {"override_optimizer_config": {"fused": True}},
            "fused is compiled code already: leave it out, or",
        ),
        (
            {"param_groups": [FUSED_BIAS]},
            "fused is compiled code already: leave it out, or",
        ),
        (
            {"optimizer_impl": "torchao.optim", "optimizer": "_AdamW"},
            "_AdamW compiles its step by itself:",
        ),
        (
            {"optimizer": "SparseAdam", "provides": "sparse_gradients"},
            "SparseAdam does more in its step than torch can compile:",
        ),
        (
            {"optimizer": "LBFGS", "provides": "closure"},
            "LBFGS does more in its step than torch can compile:",
        ),
        (
            LOOKAHEAD,
            "Lookahead takes the steps of another optimizer, which stay uncompiled:",
        ),
    ],
    ids=str,
)
def test_what_compiles_by_itself_or_not_at_all(
    module: nn.Module, fields: dict[str, Any], what: str
) -> None:
    provides = fields.pop("provides", ())
    node = {"compile_step": True, "_full_key_": "actor.optim", **fields}
    with pytest.raises(ConfigError) as caught:
        build_optimizer(module, node, provides=provides)
    assert str(caught.value) == f"{what} {AT}"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"implementation": "foreach"},
            "lr as a Tensor is not supported for capturable=False and foreach=True:"
            " leave implementation out, or",
        ),
        (
            {"optimizer": "Adafactor"},
            "torch finds nothing in the step of Adafactor that it could compile:",
        ),
        (
            {"optimizer_impl": "pytorch_optimizer", "optimizer": "AdaBelief"},
            "AdaBelief goes by numbers for which torch would compile each step anew:",
        ),
    ],
    ids=str,
)
def test_what_a_trial_finds_out(
    module: nn.Module,
    fields: dict[str, Any],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    node = {"compile_step": True, "_full_key_": "actor.optim", **fields}
    assert str(refused(module, node)).endswith(f"{what} {AT}")


def test_where_torch_compiles_nothing_the_step_runs_as_it_is(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    optimizer = build_optimizer(module, {"compile_step": True, "lr": 0.1})
    module.weight.grad = module.weight.detach().clone()
    before = module.weight.detach().clone()
    optimizer.step()
    assert float((module.weight.detach() - before).abs().max()) > 0.09


def test_it_is_true_or_false_and_of_the_whole_node(module: nn.Module) -> None:
    assert str(refused(module, {"compile_step": "inductor"})) == (
        "'inductor' is not a bool: write true or false @ compile_step"
    )
    with pytest.raises(TypeError):
        ParamGroupConfig(pattern="*", compile_step=True)  # type: ignore[call-arg]
    rule = {"pattern": "*", "compile_step": True}
    assert str(refused(module, {"param_groups": [rule]})) == (
        "no field compile_step in a rule: it holds for the whole node"
        " @ param_groups[0].compile_step"
    )
