"""Groups, clipping and the watch on models that `fully_shard` has cut."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from two_process_results import assert_clipped, assert_like_one_process, groups

REPLACED = (
    "the module{} no longer has the parameters {}, which its optimizer would go on"
    " updating: build the optimizer after sharding, load_state_dict(assign=True) and"
    " other changes of the module"
)
FIRST_FIVE = (
    "token_embedding.weight, position_embedding.weight, blocks.0.ln_1.weight,"
    " blocks.0.ln_1.bias, blocks.0.attention.qkv.weight and 24 more"
)


def moved(results: dict[str, Any], kind: str) -> torch.Tensor:
    return torch.tensor(results[kind]["values"]) - torch.tensor(results["start"])


@pytest.mark.parametrize("scenario", ["one_class", "every_layer_sharded"])
def test_a_sharded_model_has_the_groups_and_steps_of_the_whole_one(
    scenario: str, found
) -> None:
    results = found("sharded_training", scenario)
    assert_like_one_process(results)
    assert_clipped(results)
    assert groups(results) == [
        ("AdamW", "", 1),
        ("AdamW", "no_decay", 10),
        ("AdamW", "param_groups[0]", 8),
        ("AdamW", "param_groups[1], no_decay", 10),
    ]


@pytest.mark.parametrize(
    "scenario", ["several_classes", "several_classes_plain_beside_sharded"]
)
def test_one_norm_of_sharded_gradients_clips_several_classes(
    scenario: str, found
) -> None:
    results = found("sharded_training", scenario)
    assert_like_one_process(results)
    assert_clipped(results)
    assert groups(results) == [
        ("AdamW", "", 1),
        ("AdamW", "no_decay", 8),
        ("AdamW", "param_groups[1]", 8),
        ("AdamW", "param_groups[2], no_decay", 10),
        ("SGD", "param_groups[0], no_decay", 2),
    ]


@pytest.mark.parametrize("scenario", ["plain_beside_sharded", "two_meshes"])
def test_gradients_of_different_meshes_and_of_none_are_clipped_by_one_norm(
    scenario: str, found
) -> None:
    results = found("sharded_training", scenario)
    assert_like_one_process(results)
    assert_clipped(results)


def test_a_scaler_leaves_the_norm_of_sharded_gradients_unscaled(found) -> None:
    for norms in found("sharded_training", "scaled_gradients"):
        assert norms["together"] == pytest.approx(norms["alone"], rel=1e-9)


def test_muon_orthogonalises_whole_matrices_of_a_sharded_model(found) -> None:
    results = found("sharded_training", "muon")
    assert_clipped(results)
    assert results[0]["together"] == results[1]["together"]
    assert results[0]["together"]["groups"] == results[0]["alone"]["groups"]
    assert groups(results)[-1] == ("Muon", "param_groups[0]", 8)
    # It computes in bfloat16, and sums of shards are rounded otherwise: by 1e-3 of a
    # gradient, which turns small singular vectors of the update by far more.
    alone, together = (moved(results[0], kind) for kind in ("alone", "together"))
    assert torch.cosine_similarity(alone, together, dim=0) > 0.98
    assert float(together.norm()) == pytest.approx(float(alone.norm()), rel=1e-2)


def test_blocks_of_which_one_is_sharded_are_still_a_sequence_of_blocks(found) -> None:
    for results in found("sharded_training", "one_block_of_a_sequence_sharded"):
        assert results["together"] == results["alone"]


@pytest.mark.parametrize("kind", ["one_class", "several_classes"])
def test_an_optimizer_built_before_sharding_says_so_and_does_not_step(
    kind: str, found
) -> None:
    for results in found("sharded_watching", "built_before_sharding"):
        told = REPLACED.format("", FIRST_FIVE)
        assert results[kind] == {"told": told, "unchanged": True}


def test_no_module_steps_where_one_of_two_was_sharded_too_late(found) -> None:
    for results in found("sharded_watching", "second_module_sharded_too_late"):
        names = "up.weight, up.bias, norm.weight, norm.bias, down.weight and 1 more"
        assert results == {
            "told": REPLACED.format(" 'critic'", names),
            "unchanged": True,
        }


def test_an_optimizer_built_on_gathered_parameters_does_not_step(found) -> None:
    for results in found("sharded_watching", "built_while_unsharded"):
        assert results["told"] is not None
        assert "token_embedding.weight" in results["told"]


def test_no_state_of_a_sharded_model_raises_a_false_alarm(found) -> None:
    for results in found("sharded_watching", "built_after_sharding"):
        assert len(results) == 8
        assert all(told == [None] * 8 for told in results.values()), results
