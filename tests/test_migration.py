"""Old keys in mappings and YAML files: where they are renamed, and where not."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from optim_hydra import OptimConfig, build_lr_scheduler, build_optimizer, migrate
from optim_hydra.errors import MigrationError, RenamedKeyWarning
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.source import MigratingSource, _read

TREE = {
    "optim": {"grad_clip": 1.0},
    "models": {
        "heads": [
            {"optim": {"warmup_steps_ratio": 0.1}},
            {"optim": {"lr_warmup_steps_ratio": 0.3}},
        ]
    },
    "trainer": {"grad_clip": 5.0, "warmup_style": "x"},
    "other": {"optim": {"_target_": "torch.optim.SGD", "grad_clip": 1}},
}
MIGRATED = {
    "optim": {"clip_grad": 1.0},
    "models": {
        "heads": [
            {"optim": {"lr_warmup_steps_ratio": 0.1}},
            {"optim": {"lr_warmup_steps_ratio": 0.3}},
        ]
    },
    "trainer": TREE["trainer"],
    "other": TREE["other"],
}


def test_a_tree_is_migrated_as_a_copy() -> None:
    for tree in (TREE, OmegaConf.create(TREE)):
        before = copy.deepcopy(tree)
        with pytest.warns(RenamedKeyWarning) as caught:
            result = migrate(tree)
        assert result == MIGRATED
        assert tree == before
        assert type(result) is type(tree)
        assert [str(w.message).partition(" is ")[0] for w in caught] == [
            "optim.grad_clip",
            "models.heads[0].optim.warmup_steps_ratio",
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert migrate(result) == result


def test_references_and_missing_values_are_left_alone() -> None:
    cfg = OmegaConf.create(
        {
            "ratio": 0.2,
            "optim": {"warmup_steps_ratio": "${ratio}", "lr": "???"},
            "second": {"optim": "${optim}"},
            "third": {"optim": "???"},
        }
    )
    with pytest.warns(RenamedKeyWarning):
        result = migrate(cfg)
    assert OmegaConf.to_container(result) == {
        "ratio": 0.2,
        "optim": {"lr_warmup_steps_ratio": "${ratio}", "lr": "???"},
        "second": {"optim": "${optim}"},
        "third": {"optim": "???"},
    }
    assert result.optim.lr_warmup_steps_ratio == 0.2


def test_a_typed_node_is_migrated_under_any_name() -> None:
    cfg = OmegaConf.create({"teacher": OmegaConf.structured(OptimConfig)})
    cfg = OmegaConf.merge(cfg, {"teacher": {"lr": 2e-3}})
    OmegaConf.update(cfg, "teacher.grad_clip", 0.5, force_add=True)
    with pytest.warns(RenamedKeyWarning):
        result = migrate(cfg)
    assert result.teacher.clip_grad == 0.5
    assert "grad_clip" not in result.teacher


@pytest.mark.parametrize("first", ["old", "new"])
def test_a_new_key_at_its_default_counts_as_not_set(first: str) -> None:
    node = {"warmup_steps_ratio": 0.1, "lr_warmup_steps_ratio": 0.0}
    if first == "new":
        node = dict(reversed(node.items()))
    with pytest.warns(RenamedKeyWarning):
        assert migrate({"optim": node}) == {"optim": {"lr_warmup_steps_ratio": 0.1}}


def test_null_under_an_old_key_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert migrate({"optim": {"warmup_style": None}}) == {"optim": {}}


def test_a_conflict_in_one_file_names_both(compose) -> None:
    yaml = "actor: {optim: {warmup_steps_ratio: 0.1, lr_warmup_steps_ratio: 0.2}}\n"
    with pytest.raises(MigrationError) as caught:
        compose(yaml=yaml)
    message = str(caught.value)
    assert message.startswith(
        "warmup_steps_ratio: 0.1 and lr_warmup_steps_ratio: 0.2 are one key with two"
        " values: keep one of them (in "
    )
    assert message.endswith("/config.yaml) @ actor.optim.warmup_steps_ratio")


def test_all_three_places_of_yaml_and_the_command_line_on_top(compose) -> None:
    files = {
        "optim/mine.yaml": "defaults: [base_optim, _self_]\ngrad_clip: 0.5\n",
        "experiment/old.yaml": (
            "# @package _global_\ncritic: {optim: {warmup_style: linear}}\n"
        ),
        "critic/old.yaml": "# @package critic.optim\nwarmup_steps_ratio: 0.3\n",
    }
    yaml = "actor: {optim: {warmup_steps_ratio: 0.1}}\n"
    with pytest.warns(RenamedKeyWarning) as caught:
        cfg = compose(
            "optim@critic.optim=mine",
            "+experiment=old",
            "+critic=old",
            "actor.optim.lr_warmup_steps_ratio=0.2",
            yaml=yaml,
            files=files,
        )
    assert cfg.critic.optim.clip_grad == 0.5
    assert cfg.critic.optim.lr_scheduler_type == "linear"
    assert cfg.critic.optim.lr_warmup_steps_ratio == 0.3
    assert cfg.actor.optim.lr_warmup_steps_ratio == 0.2
    assert sorted(str(w.message).partition(" is ")[0] for w in caught) == [
        "actor.optim.warmup_steps_ratio",
        "critic.optim.warmup_steps_ratio",
        "critic.optim.warmup_style",
        "optim.grad_clip",
    ]
    assert {w.filename.rpartition("/")[2] for w in caught} == {
        "config.yaml",
        "mine.yaml",
        "old.yaml",
    }


def test_a_node_with_old_keys_builds(module, compose) -> None:
    node = {"warmup_style": "cosine", "warmup_steps_ratio": 0.1, "grad_clip": 1.0}
    with pytest.warns(RenamedKeyWarning) as caught:
        optimizer = build_optimizer(module, node)
    assert len(caught) == 3
    with pytest.warns(RenamedKeyWarning):
        scheduler = build_lr_scheduler(optimizer, node, 100)
    assert (scheduler.schedule.name, scheduler.schedule.warmup) == ("cosine", 10)


def test_sweeper_params_in_yaml_are_renamed(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("""\
hydra:
  sweeper:
    params:
      critic.optim.warmup_steps_ratio: 0.1,0.2
      +critic.optim.grad_clip: 1,2
      seed: 0,1
""")
    source = MigratingSource("main", f"optim_hydra://file://{tmp_path}")
    with pytest.warns(RenamedKeyWarning):
        config = source.load_config("config").config
    assert config.hydra.sweeper.params == {
        "critic.optim.lr_warmup_steps_ratio": "0.1,0.2",
        "++critic.optim.clip_grad": "1,2",
        "seed": "0,1",
    }


def test_a_file_is_read_once_for_each_of_its_states(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("critic: {optim: {warmup_style: cosine}}\n")
    source = MigratingSource("main", f"optim_hydra://file://{tmp_path}")
    before = _read.cache_info()
    for _ in range(2):
        with pytest.warns(RenamedKeyWarning):  # what is kept is what the file says
            config = source.load_config("config").config
        assert config == {"critic": {"optim": {"lr_scheduler_type": "cosine"}}}
        config.critic.optim.lr_scheduler_type = "changed by whom it was given to"
    path.write_text("critic: {optim: {lr: 1}}\n")
    assert source.load_config("config").config == {"critic": {"optim": {"lr": 1}}}
    after = _read.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (2, 1)


LEAF = st.one_of(st.integers(0, 3), st.sampled_from(["a", "cosine"]), st.none())
KEY = st.sampled_from(["optim", "a", "lr", "grad_clip", "warmup_style", "clip_grad"])
TREES = st.recursive(
    LEAF,
    lambda child: st.dictionaries(KEY, child, max_size=4) | st.lists(child, max_size=3),
    max_leaves=12,
)


def outside_nodes(tree: object, name: str = "") -> object:
    """Drop what renames may touch; nothing that is left may change."""
    if isinstance(tree, dict):
        touched = (*RENAMED_KEYS, "clip_grad", "lr_scheduler_type")
        return {
            key: outside_nodes(value, key)
            for key, value in tree.items()
            if name != "optim" or key not in touched
        }
    if isinstance(tree, list):
        return [outside_nodes(item) for item in tree]
    return tree


@given(tree=st.dictionaries(KEY, TREES, max_size=4))
def test_nothing_changes_outside_nodes_and_twice_is_once(tree: dict) -> None:
    before = copy.deepcopy(tree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RenamedKeyWarning)
        try:
            once = migrate(tree)
        except MigrationError:
            assert tree == before
            return
    assert tree == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert migrate(once) == once
    assert outside_nodes(once) == outside_nodes(tree)
