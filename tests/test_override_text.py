"""Old keys on the command line: prefixes, sweeps, braces, mounts, conflicts."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optim_hydra import migrate_overrides
from optim_hydra.errors import MigrationError, RenamedKeyWarning
from optim_hydra.renamed_keys import RENAMED_KEYS, RenamedKey


def quietly(*overrides: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedKeyWarning)
        return migrate_overrides(overrides)


@pytest.mark.parametrize(
    ("typed", "handed_on"),
    [
        ("optim.warmup_steps_ratio=0.1", "optim.lr_warmup_steps_ratio=0.1"),
        ("optim.lr_scheduler=cosine", "optim.lr_scheduler_type=cosine"),
        (
            "critic.optim.warmup_style='cosine'",
            "critic.optim.lr_scheduler_type='cosine'",
        ),
        ("a.b.c.optim.grad_clip=1.0", "a.b.c.optim.clip_grad=1.0"),
        ("+optim.grad_clip=1.0", "++optim.clip_grad=1.0"),
        ("++optim.grad_clip=1.0", "++optim.clip_grad=1.0"),
        ("~optim.grad_clip", "~optim.clip_grad"),
        ("~optim.grad_clip=1.0", "~optim.clip_grad=1.0"),
        ("optim.grad_clip=0.5,1.0", "optim.clip_grad=0.5,1.0"),
        ("optim.grad_clip=choice(0.5,1.0)", "optim.clip_grad=choice(0.5,1.0)"),
        ("optim.grad_clip=${x.y}", "optim.clip_grad=${x.y}"),
        ("models.heads.0.optim.grad_clip=1", "models.heads.0.optim.clip_grad=1"),
        (
            "optim={lr: 1e-3, warmup_steps_ratio: 0.1}",
            "optim={lr: 1e-3, lr_warmup_steps_ratio: 0.1}",
        ),
        (
            "+actor={optim:{warmup_style:cosine},grad_clip:2}",
            "+actor={optim:{lr_scheduler_type:cosine},grad_clip:2}",
        ),
        (
            "optim=choice({grad_clip:1},{grad_clip:2})",
            "optim=choice({clip_grad:1},{clip_grad:2})",
        ),
    ],
)
def test_an_old_key_is_handed_on_as_the_new_one(typed: str, handed_on: str) -> None:
    with pytest.warns(RenamedKeyWarning):
        assert migrate_overrides([typed]) == [handed_on]


@pytest.mark.parametrize(
    "typed",
    [
        "seed=0",
        "--cfg",
        "job",
        "-m",
        "optim=sgd",
        "optim@critic.optim=sgd",
        "~optim@critic.optim",
        "trainer.warmup_steps_ratio=0.1",
        "optim.warmup.grad_clip=1",
        "grad_clip=1.0",
        "actor.grad_clip=1.0",
        "optim.lr=1e-3",
        "note='optim.grad_clip=1'",
        "optim.override_optimizer_config={grad_clip: 1}",
        "+x={a:{grad_clip:1}}",
        "x='{optim:{grad_clip:1}}'",
        "+note={a: it's}",
        "+note={k: 'unterminated}",
        "+note={k: a\\'b}",
    ],
)
def test_everything_else_comes_back_as_it_is(typed: str) -> None:
    assert migrate_overrides([typed]) == [typed]


def test_the_warning_names_both_keys_and_the_removal() -> None:
    with pytest.warns(RenamedKeyWarning) as caught:
        migrate_overrides(["+actor.optim.warmup_steps_ratio=0.1"])
    assert [str(w.message) for w in caught] == [
        "actor.optim.warmup_steps_ratio is now lr_warmup_steps_ratio"
        " (since 0.1.0; the old key is removed in 1.0.0)"
    ]
    assert issubclass(RenamedKeyWarning, FutureWarning)


def test_one_warning_for_each_place_whatever_the_number_of_calls() -> None:
    typed = ["actor.optim.grad_clip=1", "critic.optim.grad_clip=1"]
    with pytest.warns(RenamedKeyWarning) as caught:
        results = [migrate_overrides(typed) for _ in range(3)]
    assert len(caught) == 2
    assert results == [["actor.optim.clip_grad=1", "critic.optim.clip_grad=1"]] * 3


def test_only_the_first_rank_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert migrate_overrides(["optim.grad_clip=1"]) == ["optim.clip_grad=1"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("optim.warmup_steps_ratio=0.1", "optim.lr_warmup_steps_ratio=0.2"),
        ("optim.lr_warmup_steps_ratio=0.2", "+optim.warmup_steps_ratio=0.1"),
        ("optim.warmup_style=cosine", "optim.lr_scheduler=linear"),
        ("optim.grad_clip=0.1,0.2", "optim.clip_grad=0.1"),
    ],
)
def test_two_spellings_that_disagree_are_refused(first: str, second: str) -> None:
    with pytest.raises(MigrationError) as caught:
        migrate_overrides([first, second])
    assert first in str(caught.value)
    assert second in str(caught.value)
    assert "one key with two values: keep one of them" in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "handed_on"),
    [
        (
            ["optim.warmup_steps_ratio=0.10", "optim.lr_warmup_steps_ratio=0.1"],
            ["optim.lr_warmup_steps_ratio=0.10"],
        ),
        (
            ["optim.lr_warmup_steps_ratio=0.0", "optim.warmup_steps_ratio=0.1"],
            ["optim.lr_warmup_steps_ratio=0.1"],
        ),
        (
            ["optim.warmup_style=cosine", "optim.lr_scheduler='cosine'"],
            ["optim.lr_scheduler_type=cosine"],
        ),
        (["optim.warmup_style=null"], []),
        (["optim.warmup_style=Null"], []),
        (["optim={warmup_style: null}"], ["optim={}"]),
        (["optim={lr: 1,warmup_style: null}"], ["optim={lr: 1}"]),
        (["optim={warmup_style: null, lr: 1}"], ["optim={ lr: 1}"]),
        (["optim={grad_clip: null}"], ["optim={clip_grad: null}"]),
        (
            ["a.optim.grad_clip=1", "b.optim.clip_grad=2"],
            ["a.optim.clip_grad=1", "b.optim.clip_grad=2"],
        ),
        # As in Hydra, the last of two equal spellings wins.
        (
            ["optim.grad_clip=1", "optim.grad_clip=2"],
            ["optim.clip_grad=1", "optim.clip_grad=2"],
        ),
    ],
)
def test_spellings_that_agree_become_one(
    typed: list[str], handed_on: list[str]
) -> None:
    assert quietly(*typed) == handed_on


def test_two_spellings_inside_braces_are_refused() -> None:
    with pytest.raises(MigrationError, match="are one key: keep one of them"):
        quietly("optim={grad_clip: 1, clip_grad: 2}")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["+optim.min_lr=1e-5", "optim.lr=1e-3"],
            "min_lr is a key of Megatron: write min_lr_ratio, a share of lr (0.01"
            " here), where min_lr is an absolute rate @ optim.min_lr",
        ),
        (
            ["optim.lr_warmup_init=0"],
            "lr_warmup_init is a key of Megatron: write lr_warmup_init_ratio, a share"
            " of lr, where lr_warmup_init is an absolute rate @ optim.lr_warmup_init",
        ),
        (
            ["+critic={optim: {min_lr_factor: 0.1}}"],
            "min_lr_factor is a key of torchtitan: write min_lr_ratio"
            " @ critic.optim.min_lr_factor",
        ),
        (
            ["optim.use_distributed_optimizer=true"],
            "use_distributed_optimizer is a key of Megatron and has no equal here:"
            " remove it @ optim.use_distributed_optimizer",
        ),
    ],
)
def test_keys_of_other_libraries_are_refused_with_ours(
    typed: list[str], message: str
) -> None:
    with pytest.raises(MigrationError) as caught:
        migrate_overrides(typed)
    assert str(caught.value) == message


def test_a_removed_key_is_an_error_that_names_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = RenamedKey("grad_clip", "clip_grad", "0.0.1", "0.1.0", (None,))
    monkeypatch.setitem(RENAMED_KEYS, "grad_clip", old)
    for typed in ("optim.grad_clip=1", "optim={grad_clip: 1}"):
        with pytest.raises(MigrationError) as caught:
            migrate_overrides([typed])
        assert str(caught.value) == (
            "grad_clip was removed in 0.1.0: write clip_grad @ optim.grad_clip"
        )


WORDS = st.sampled_from(["a", "optim", "lr", "x1", *RENAMED_KEYS, "clip_grad"])
KEYS = st.lists(WORDS, min_size=1, max_size=4).map(".".join)
VALUES = st.sampled_from(["1", "0.1,0.2", "{a: 1}", "[1,2]", "cosine", "${b}"])


@given(prefix=st.sampled_from(["", "+", "++", "~"]), key=KEYS, value=VALUES)
def test_a_second_pass_changes_nothing(prefix: str, key: str, value: str) -> None:
    once = quietly(f"{prefix}{key}={value}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert migrate_overrides(once) == once
