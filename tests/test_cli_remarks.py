"""What `check` says of choices that were left to the library, and keeps for itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from optim_hydra.cli.app import app

SFT = str(Path(__file__).parents[1] / "conf/sft.yaml")
Check = Callable[..., Result]


@pytest.fixture
def remarks() -> Callable[..., list[str]]:
    """Return what is remarked on the only node."""

    def run(*args: str) -> list[str]:
        result = CliRunner().invoke(app, ["check", SFT, "--steps=10", "--json", *args])
        assert result.exit_code == 0, result.output
        (node,) = json.loads(result.stdout)["nodes"]
        found: list[str] = node["remarks"]
        return found

    return run


FASTEST = "optim.implementation=fastest"
ONLY = "the only one that it has"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], {"AdamW": "fused=True"}),
        (["optim=lion"], {"Lion": ONLY}),
        (
            ["optim=rmsprop"],
            {"RMSprop": "foreach=True for small tensors on a CPU, its own choice"
            " elsewhere"},
        ),
        (
            ["optim=rmsprop", "--model=torch.nn.Linear:4,2"],
            {"RMSprop": "foreach=True on a CPU, its own choice elsewhere"},
        ),
        (
            ["optim=rmsprop", "--model=torch.nn.Linear:300,300"],
            {"RMSprop": "its own choice"},
        ),
        (
            ["optim=sgd", "--model=torch.nn.Embedding:4,2,sparse=True"],
            {"SGD": "its own choice"},
        ),
        (
            ["optim=muon", "--model=torch.nn.Transformer:8,2,1,1,8"],
            {"AdamW": "fused=True", "Muon": ONLY},
        ),
    ],
)  # fmt: skip
def test_check_says_what_the_fastest_is(
    remarks: Callable[..., list[str]], args: list[str], told: dict[str, str]
) -> None:
    assert remarks(FASTEST, "optim.clip_grad=null", *args) == [
        f"implementation of {name}, the fastest: {text}" for name, text in told.items()
    ]


FREE = ["optim=schedulefree_adamw", "optim.lr_scheduler_type=cosine"]
TOO_MUCH = (
    "AdamWScheduleFree averages its steps, in place of a schedule that decays: write"
    " lr_scheduler_type=constant, not cosine"
)


def test_a_schedule_beside_a_schedule_free_class_is_one_too_many(
    remarks: Callable[..., list[str]],
) -> None:
    assert remarks(*FREE) == [TOO_MUCH]
    result = CliRunner().invoke(app, ["check", SFT, "--steps=10", *FREE])
    assert result.stdout.splitlines()[3] == f"  {TOO_MUCH}"
    constant = ["optim.lr_scheduler_type=constant", "optim.min_lr_ratio=null"]
    assert remarks(*FREE, *constant) == []
    rule = "{ndim: 1, lr_scheduler_type: cosine}"
    more = [f"optim.param_groups=[{rule}]", "--model=torch.nn.Linear:4,2"]
    assert remarks(*FREE, *constant, *more) == [TOO_MUCH]


def test_classes_that_only_have_modes_keep_their_schedule(
    remarks: Callable[..., list[str]],
) -> None:
    pair = ["optim.optimizer_impl=pytorch_optimizer", "optim.optimizer=SPlus"]
    assert remarks(*pair) == []


def test_text_of_a_resolver_is_shown_as_its_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    further = "optim.override_optimizer_config={line_search_fn: '${oc.env:TOKEN}'}"
    for more in ([], ["--json"]):
        args = ["check", SFT, "optim.optimizer=LBFGS", "optim.clip_grad=null", further]
        result = CliRunner().invoke(app, [*args, "--steps=10", *more])
        assert result.exit_code == 0, result.output
        assert "line_search_fn='${oc.env:TOKEN}'" in result.stdout
        assert "hunter2" not in result.output
