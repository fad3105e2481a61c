"""A class that takes matrices only, as public bug reports met it.

Cases: B47.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from case_helpers import Compose, names_by, refused, train_once, values_of
from optim_hydra import ConfigError, build_optimizer, build_optimizers
from wrapped_models import WRAPPERS, three_layers

MUON = "actor:\n  optim:\n    optimizer: Muon\n    lr: 2e-2\n"
MATRICES = ["0.weight", "2.weight"]
VECTORS = ["0.bias", "1.weight", "1.bias", "2.bias"]
UNSUITABLE = "0.bias (4,), 1.weight (4,), 1.bias (4,), 2.bias (2,) (4 in all)"


def two_parts() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"actor": nn.Linear(4, 2), "critic": nn.Linear(4, 2)}


def test_B47_all_unsuitable_parameters_are_listed(compose: Compose) -> None:
    assert str(refused(three_layers(), compose(yaml=MUON).actor.optim)) == (
        f"Muon takes matrices (2-D parameters) only, not {UNSUITABLE}; choose"
        " optim@MODULE.optim=muon, or AdamW with a rule for the matrices:"
        " param_groups=[{ndim: 2, optimizer: Muon}] @ actor.optim.optimizer"
    )


def test_B47_with_the_matrices_alone_it_builds(compose: Compose) -> None:
    optim = compose(yaml=MUON).actor.optim
    named = three_layers().named_parameters()
    optimizer = build_optimizer([item for item in named if item[0] in MATRICES], optim)
    assert type(optimizer) is torch.optim.Muon
    assert names_by(optimizer, "lr") == {0.02: MATRICES}


@pytest.mark.parametrize(
    ("overrides", "matrices"),
    [
        (["optim@actor.optim=muon"], ["0.weight"]),
        (["actor.optim.param_groups=[{ndim: 2, optimizer: Muon}]"], MATRICES),
        (
            [
                "actor.optim.optimizer=Muon",
                "actor.optim.param_groups=[{role: 1d, optimizer: AdamW}]",
            ],
            MATRICES,
        ),
    ],
    ids=["group", "rule", "rest"],
)
def test_B47_what_the_error_says_builds_and_trains(
    overrides: list[str], matrices: list[str], compose: Compose
) -> None:
    model = three_layers()
    container = build_optimizer(model, compose(*overrides).actor.optim)
    assert sorted(container.names) == ["AdamW", "Muon"]
    assert list(values_of(container["Muon"], "lr")) == matrices
    others = {*MATRICES, *VECTORS} - {*matrices}
    assert set(values_of(container["AdamW"], "lr")) == others
    before = [parameter.detach().clone() for parameter in model.parameters()]
    train_once(container, model)
    assert not any(map(torch.equal, before, model.parameters()))


@pytest.mark.parametrize("wrap", ["distributed", "compiled", "checkpointed_child"])
def test_B47_kin_wrapped_models(wrap: str, one_process: None) -> None:
    model = WRAPPERS[wrap](three_layers())
    assert UNSUITABLE in str(refused(model, {"optimizer": "Muon"}))
    rule = {"ndim": 2, "optimizer": "Muon"}
    container = build_optimizer(model, {"param_groups": [rule]})
    assert list(values_of(container["Muon"], "lr")) == MATRICES
    train_once(container, model)


def test_B47_kin_the_first_five_and_a_count() -> None:
    model = nn.Sequential(*(nn.Conv2d(1, 1, 1) for _ in range(4)))
    told = str(refused(model, {"optimizer": "Muon"}))
    assert "not 0.weight (1, 1, 1, 1), 0.bias (1,), 1.weight (1, 1, 1, 1)" in told
    assert "and 3 more (8 in all)" in told


def test_B47_kin_a_rule_that_names_the_class_is_told_at_its_place(
    compose: Compose,
) -> None:
    config = compose("actor.optim.param_groups=[{pattern: '0.*', optimizer: Muon}]")
    told = str(refused(three_layers(), config.actor.optim))
    assert "only, not 0.bias (4,) (1 in all)" in told
    assert told.endswith("@ actor.optim.param_groups[0].optimizer")


def test_B47_kin_every_part_is_listed(compose: Compose) -> None:
    config = compose("actor.optim.optimizer=Muon", "critic.optim.optimizer=Muon")
    with pytest.raises(ConfigError) as caught:
        build_optimizers(two_parts(), config)
    problems = [(p.what.partition(";")[0], p.key) for p in caught.value.problems]
    what = "Muon takes matrices (2-D parameters) only, not bias (2,) (1 in all)"
    assert problems == [
        (what, "actor.optim.optimizer"),
        (what, "critic.optim.optimizer"),
    ]


def test_B47_kin_a_tree_of_plain_dicts_gives_the_same_keys() -> None:
    tree = {name: {"optim": {"optimizer": "Muon"}} for name in two_parts()}
    with pytest.raises(ConfigError) as caught:
        build_optimizers(two_parts(), tree)
    assert [problem.key for problem in caught.value.problems] == [
        "actor.optim.optimizer",
        "critic.optim.optimizer",
    ]
