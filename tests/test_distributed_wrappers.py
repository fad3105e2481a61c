"""Names, groups and clipping under classes that wrap a model for two processes."""

from __future__ import annotations

import pytest

from two_process_results import assert_clipped, assert_like_one_process


@pytest.mark.parametrize("scenario", ["data_parallel_by_name", "data_parallel_by_role"])
def test_rules_see_through_data_parallel(scenario: str, found) -> None:
    results = found("replicated_training", scenario)
    assert_like_one_process(results)
    assert_clipped(results)
    names = [n for row in results[0]["together"]["groups"] for n in row["names"]]
    assert not [name for name in names if name.startswith("module.")]


def test_a_pattern_that_names_the_wrapper_is_shown_names_without_it(found) -> None:
    for results in found("replicated_training", "wrappers_segment_in_a_pattern"):
        assert results["told"] == (
            "pattern 'module.blocks.*' matches no parameter: did you mean"
            " blocks.0.ln_1.weight? @ param_groups[0]"
        )


def test_rules_see_names_through_the_older_fsdp_class(found) -> None:
    results = found("replicated_training", "fsdp1_by_name")
    assert_like_one_process(results)
    names = [n for row in results[0]["together"]["groups"] for n in row["names"]]
    assert not [name for name in names if "_fsdp_wrapped_module" in name]


FLATTENED = "FullyShardedDataParallel (FSDP1) leaves pieces of flattened parameters: "


def test_the_older_fsdp_class_hides_the_shapes_that_no_decay_needs(found) -> None:
    for results in found("replicated_training", "fsdp1_with_what_needs_shapes"):
        assert results["told"] == (
            f"{FLATTENED}build the optimizer before wrapping the model"
            " (use_orig_params=True), or match by pattern @ no_decay"
        )


def test_the_older_fsdp_class_is_not_clipped_by_the_norm_of_a_shard(found) -> None:
    for results in found("replicated_training", "fsdp1_clipped"):
        assert results["told"] == (
            f"{FLATTENED}each process would clip by its own norm; set clip_grad=null"
            " and call the model's clip_grad_norm_, or shard by fully_shard (FSDP2) @"
            " clip_grad"
        )


def test_no_state_of_the_older_fsdp_class_raises_a_false_alarm(found) -> None:
    for results in found("replicated_training", "fsdp1_evaluated_before_each_step"):
        assert results == {"steps": "taken"}


def test_an_optimizer_built_before_the_older_fsdp_class_trains_its_shards(
    found,
) -> None:
    for results in found("replicated_training", "fsdp1_built_before_wrapping"):
        assert results["together"] == pytest.approx(results["alone"], abs=1e-9)
