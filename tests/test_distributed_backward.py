"""Updates in backward under classes that wrap a model for two processes."""

from __future__ import annotations

from two_process_results import assert_like_one_process

LATER = (
    "{} sums gradients over processes after backward has seen them, and"
    " step_in_backward would use those of one process: shard by fully_shard (FSDP2), or"
    " set step_in_backward=false @ step_in_backward"
)


def test_shards_are_updated_as_the_whole_is(found) -> None:
    results = found("sharded_training", "updated_in_backward")
    assert_like_one_process(results)
    assert all(each["freed"] and each["updated"] for each in results)


def test_plain_parameters_beside_sharded_ones_are_refused(found) -> None:
    for results in found("sharded_training", "updated_in_backward"):
        assert results["told"] == (
            "gradients of plain parameters beside sharded ones are averaged over"
            " processes after backward: set step_in_backward=false @ step_in_backward"
        )


def test_what_reduces_gradients_later_is_refused_before_anything_changes(found) -> None:
    for said in found("replicated_training", "updated_in_backward"):
        assert said["ddp"] == LATER.format("DistributedDataParallel")
        assert said["fsdp1"] == LATER.format("FullyShardedDataParallel")
        assert said["wrapped later"] == LATER.format("DistributedDataParallel")
        assert said["unchanged"]
