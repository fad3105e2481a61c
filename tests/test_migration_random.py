"""Laws of rewriting: nothing else changes, twice is once, the optimizers are equal."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from torch import nn

from optim_hydra import (
    build_lr_scheduler,
    build_optimizer,
    convert_config,
    migrate,
    migrate_overrides,
)
from optim_hydra.errors import MigrationError, RenamedKeyWarning
from optim_hydra.migrating.scripts import migrate_script
from optim_hydra.migrating.yaml_texts import migrate_yaml
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.tree import mappings
from random_yaml import VALUES, scalar, texts

PATH = PurePath("conf/config.yaml")
KEYS = {name for key in RENAMED_KEYS.values() for name in (key.old, key.new)}
COMMENT = "#[^\r\n]*"
TOUCHED = re.compile("|".join(rf"\b{key}\b" for key in KEYS))


def described(text: str) -> list[Any]:
    """Return what the optimizers and schedules of a config's nodes come to."""
    found = []
    for at, node in mappings(OmegaConf.create(text)):
        if at.rpartition(".")[2] == "optim" and not any(k in node for k in OTHERS):
            optimizer = build_optimizer(nn.Linear(4, 2), node)
            scheduler = build_lr_scheduler(optimizer, node, 100)
            rates = []
            for _ in range(12):
                rates.append(scheduler.get_last_lr())
                optimizer.step()
                scheduler.step()
            found.append((at, optimizer.defaults, rates))
    return found


OTHERS = ("optim", "actor", "critic", "trainer", "heads")


@given(text=texts())
@settings(max_examples=60, deadline=None)
def test_a_file_says_the_same_and_stays_elsewhere(text: str) -> None:
    migrated = migrate_yaml(text, PATH)
    result = migrated.result()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedKeyWarning)
        try:
            expected = migrate(OmegaConf.create(text))
        except MigrationError as error:
            refused = {problem.key for problem in error.problems}
        else:
            refused = set()
    assert refused <= {question.key for question in migrated.questions}
    if refused:
        return
    assert all(question.key for question in migrated.questions)
    if not migrated.questions:
        assert OmegaConf.create(result) == expected
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RenamedKeyWarning)
            assert described(text) == described(result)
    again = migrate_yaml(result, PATH)
    assert again.result() == result
    found = iter(re.findall(COMMENT, result))
    assert all(comment in found for comment in comments_that_stay(text))
    all_of_them = iter(re.findall(COMMENT, text))
    assert all(comment in all_of_them for comment in re.findall(COMMENT, result))
    left = iter(result.splitlines(keepends=True))
    assert all(line in left for line in elsewhere(text))  # in this order


def comments_that_stay(text: str) -> list[str]:
    """Return the comments that stand neither beside nor right above one of the keys."""
    stay: list[str] = []
    is_about_a_key = False
    for line in reversed(text.splitlines()):
        is_comment = line.strip().startswith("#")
        is_about_a_key = bool(TOUCHED.search(line)) or (is_about_a_key and is_comment)
        stay += [] if is_about_a_key else re.findall(COMMENT, line)
    return stay[::-1]


def elsewhere(text: str) -> list[str]:
    """Return the lines, each with its break, that hold none of the keys.

    Not those with a comment, which are looked at above, nor an empty one, which goes
    where two would stand.
    """
    lines = text.splitlines(keepends=True)[:-1]  # a last break may go
    held = [line for line in lines if "#" not in line and line.strip()]
    return [line for line in held if not TOUCHED.search(line)]


@st.composite
def command_lines(draw: Any) -> list[str]:
    """Make the words of a command, unquoted."""
    words = []
    for _ in range(draw(st.integers(1, 5))):
        node = draw(st.sampled_from(["optim", "a.optim", "optim.x", "trainer", "o"]))
        key = draw(st.sampled_from(sorted(VALUES)))
        value = scalar(draw(st.sampled_from(VALUES[key])), draw)
        value = value.replace(" ", "").replace("~", "null").strip("'\"")
        prefix = draw(st.sampled_from(["", "+", "++"]))
        words.append(f"{prefix}{node}.{key}={value}")
    return words


@given(words=command_lines(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_command_line_says_the_same(words: list[str], data: Any) -> None:
    if len({word.lstrip("+").partition("=")[0] for word in words}) < len(words):
        return
    gaps = st.sampled_from([" ", "  ", " \\\n    "])
    quote = st.sampled_from(["{}", "'{}'", '"{}"'])
    text = "python train.py"
    for word in words:
        text += data.draw(gaps) + data.draw(quote).format(word)
    text += data.draw(st.sampled_from(["\n", "", ' "$@"\n', " # optim.grad_clip=1\n"]))
    migrated = migrate_script(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedKeyWarning)
        try:
            expected = migrate_overrides(words)
        except MigrationError:
            assert migrated.questions
            return
    result = migrated.result()
    found = shlex.split(result.replace("\\\n", " "), comments=True)[2:]
    found = [word for word in found if word != "$@"]
    if not migrated.questions:
        assert set(map(plain, found)) == set(map(plain, expected))
    assert migrate_script(result).result() == result
    assert result.endswith("\n") == text.endswith("\n")


def plain(override: str) -> tuple[str, str]:
    key, _, value = override.lstrip("+").partition("=")
    return key, value


POOL_NAMES = ("lr_decay_style", "clip_grad", "decay_type", "beta1", "beta2")
POOL_NAMES += ("warmup_steps", "weight_decay", "max_norm")
MEGATRON = {
    "lr": st.sampled_from([1e-3, 3e-4]),
    "min_lr": st.sampled_from([0.0, 1e-4]),
    "lr_warmup_init": st.sampled_from([0.0, 1e-5]),
    "lr_decay_style": st.sampled_from(["constant", "linear", "cosine"]),
    "clip_grad": st.sampled_from([0.0, 1.0]),
    "adam_beta1": st.just(0.9),
    "adam_beta2": st.sampled_from([0.95, 0.999]),
    "optimizer": st.sampled_from(["adam", "sgd"]),
    "lr_warmup_iters": st.sampled_from([0, 5]),
    "override_optimizer_config": st.just({"adam_eps": 1e-6}),
}
TORCHTITAN = {
    "lr": st.sampled_from([1e-3, 8e-4]),
    "beta1": st.just(0.9),
    "beta2": st.just(0.95),
    "decay_type": st.sampled_from(["linear", "cosine"]),
    "decay_ratio": st.sampled_from([None, 0.0, 0.5]),
    "min_lr_factor": st.sampled_from([0.0, 0.1]),
    "warmup_steps": st.sampled_from([0, 5]),
    "weight_decay": st.just(0.1),
    "max_norm": st.just(1.0),
    "implementation": st.sampled_from(["foreach", "for-loop"]),
}


@pytest.mark.parametrize(
    ("source", "pool"), [("megatron", MEGATRON), ("torchtitan", TORCHTITAN)]
)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_foreign_file_becomes_what_its_node_becomes(
    source: str, pool: dict[str, Any], data: Any
) -> None:
    # Said in full: a file leaves the defaults of others alone.
    schedule = {"lr", *POOL_NAMES} & pool.keys()
    told = {key: pool[key] for key in schedule}
    others = {key: pool[key] for key in sorted(pool.keys() - schedule)}
    items = data.draw(st.fixed_dictionaries(told, optional=others))
    for first, second in (("adam_beta1", "adam_beta2"), ("beta1", "beta2")):
        if (first in items) != (second in items):
            return
    text = OmegaConf.to_yaml(OmegaConf.create({"optim": items}))
    migrated = migrate_yaml(text, PATH, source)
    if migrated.questions:
        return
    found = OmegaConf.create(migrated.result()).optim
    pair = [convert_config(found), convert_config(items, source)]
    for config in pair:
        config.min_lr_ratio = config.min_lr_ratio or 0.0
    assert pair[0] == pair[1]
