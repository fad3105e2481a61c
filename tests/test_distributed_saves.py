"""What is saved is complete, of one moment, and safe from a killed writer."""

from __future__ import annotations

import pytest


@pytest.fixture
def ran(found_in):
    """Return what both processes have found, by the name of a scenario."""
    return lambda scenario: found_in("interrupted_saves", 2, scenario)


def test_writers_that_are_killed_spoil_no_checkpoint_and_not_the_next_one(ran) -> None:
    for results in ran("killed_while_saving"):
        assert results == {
            "exit_code": -9,
            "left": ["step_2", "step_4.partial"],
            "written": ["__0_0.distcp", "__1_0.distcp"],
            "latest": "step_2",
            "is_same": True,
            "saved_again": True,
            "left_at_the_end": ["step_4"],
        }


@pytest.mark.parametrize("kind", ["optimizer", "container"])
def test_what_is_written_while_training_goes_on_is_of_the_moment_of_the_call(
    kind: str, ran
) -> None:
    for results in ran("saved_while_training_goes_on"):
        assert results[kind] == {"loaded": True, "went_on": True}


def test_stages_of_a_pipeline_go_into_one_checkpoint_and_come_out_of_it(
    found_in,
) -> None:
    for results in found_in("pipeline_stages", 2, "saved_and_loaded"):
        assert results == {"stage": True, "whole": True, "restored": 2}
