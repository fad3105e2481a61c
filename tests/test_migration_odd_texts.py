"""Whatever a file holds, rewriting ends, and a second run changes nothing more."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import DIALECTS, SOURCES
from optim_hydra.field_checks import CHECKS
from optim_hydra.foreign_keys import FOREIGN_ROWS
from optim_hydra.migrating.markdown import migrate_markdown
from optim_hydra.migrating.python_code import migrate_python
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.yaml_texts import migrate_yaml
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.rewriting import EXTRA, Unread

KINDS = {
    "shell": migrate_script,
    "markdown": migrate_markdown,
    "python": migrate_python,
    "yaml": lambda text, source: migrate_yaml(text, PurePath("optim/a.yaml"), source),
}
WORDS = [
    "optim.grad_clip=1",
    "optim.warmup_style=null",
    "a.optim.min_lr=1e-6",
    "optim.lr=1e-5",
    "optim.lr_decay_style=cosine",
    "optim.decay_type=sqrt",
    "optim={grad_clip: 1}",
    "optim: {grad_clip: 1, warmup_style: null}",
    "grad_clip: 1",
    "optim:",
    "--learning_rate 1e-5",
    "--adam_beta1=0.9",
    "python",
    "EOF",
    "<<EOF",
    "A=(",
    "it's",
    "#",
    "- ",
    "  ",
    "&x",
    "*x",
]
MARKS = [*"'\"`()[]{}\\\n\r\t,;|&$=~+", "```\n", "```yaml\n", "$(", "\\\n", " ", " "]
texts = st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=14).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts, source=st.sampled_from(["", *SOURCES]))
@example(text=WORDS[7], source="transformers")
@example(text="optim.warmup_style=null", source="")
@example(text="`optim.warmup_style=null`", source="")
@example(text="optim: {lr: &x 1, grad_clip: &x 2}", source="")
@example(text="optim: {grad_clip: 1\r\n}", source="")
@example(text="$(optim.grad_clip=1{optim: {grad_clip: 1}", source="")
@settings(max_examples=150, deadline=None)
def test_it_ends_and_settles(kind: str, text: str, source: str) -> None:
    migrate = KINDS[kind]
    migrated = migrate(text, source)
    result = migrated.result()
    lines = text.count("\n") + text.count("\r") + 1
    assert all(0 <= question.line <= lines for question in migrated.questions)
    assert migrate(result, source).result() == result
    if "optim" not in text and "--" not in text and kind != "yaml":
        assert result == text


KEYS = [*{row.key for row in FOREIGN_ROWS}, *RENAMED_KEYS, *CHECKS]
KEYS += [f"{EXTRA}.{key}" for key in ("adam_beta1", "adam_eps", "lr", "betas", "k")]
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.floats(allow_nan=True),
    st.sampled_from(
        ["adam", "sgd", "muon", "WSD", "cosine", "linear", "wsd", "x=1", ""]
    ),
    st.sampled_from(["Lion", "SGD", "galore_adamw", "warmup_stable_decay", "1e-3"]),
    st.lists(st.integers() | st.text(max_size=2), max_size=3),
    st.dictionaries(
        st.sampled_from(["min_lr", "decay_type", "num_decay_steps"]), st.integers()
    ),
    st.just(Unread("$X")),
)


@pytest.mark.parametrize("dialect", ["", *DIALECTS])
@pytest.mark.parametrize("whole", [False, True])
@given(items=st.dictionaries(st.sampled_from(sorted(KEYS)), values, max_size=8))
@settings(max_examples=150, deadline=None)
def test_odd_values_are_questions(dialect: str, whole: bool, items: dict) -> None:
    outcomes = convert_items(items, dialect, whole=whole)
    assert outcomes.keys() <= items.keys()
    for done in outcomes.values():
        assert not (done.undecided and done.new)
        assert all(path.partition(".")[0] in CHECKS for path, _ in done.new)
