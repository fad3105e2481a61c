"""The schedules against sequences measured from transformers, verl and torchtitan."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optim_hydra import OptimConfig, register_schedule
from optim_hydra.declared import NameTakenError
from optim_hydra.errors import Problems
from optim_hydra.schedule import steps_of
from optim_hydra.schedule_plan import plan_schedule

WARMUP_4 = {"lr_warmup_steps": 4, "total_training_steps": 10}
TITAN = {**WARMUP_4, "zero_indexed_step": False}
# verl's zero_indexed_step=False and transformers' cosine_warmup_with_min_lr shift the
# whole curve by one step, which is a run that is one step shorter.
ONE_STEP_EARLY = {
    "lr_warmup_steps": 3,
    "total_training_steps": 9,
    "lr_warmup_init_ratio": 0.25,
}
DECAY_3 = {**WARMUP_4, "lr_decay_steps_ratio": 0.3}

# name: (settings, factors for the updates 0 ... 11)
MEASURED = {
    "transformers linear": (
        {"lr_scheduler_type": "linear", **WARMUP_4},
        "0 .25 .5 .75 1 .833 .667 .5 .333 .167 0 0",
    ),
    # Peers rise again past the end; here the last value stays.
    "transformers cosine, verl cosine": (
        {"lr_scheduler_type": "cosine", **WARMUP_4},
        "0 .25 .5 .75 1 .933 .75 .5 .25 .067 0 0",
    ),
    "verl cosine, zero_indexed_step=False": (
        {"lr_scheduler_type": "cosine", **ONE_STEP_EARLY},
        ".25 .5 .75 1 .933 .75 .5 .25 .067 0 0 0",
    ),
    "verl cosine, init_lr_ratio .1": (
        {"lr_scheduler_type": "cosine", **WARMUP_4, "lr_warmup_init_ratio": 0.1},
        ".1 .325 .55 .775 1 .933 .75 .5 .25 .067 0 0",
    ),
    "transformers cosine_with_min_lr .1": (
        {"lr_scheduler_type": "cosine", **WARMUP_4, "min_lr_ratio": 0.1},
        "0 .25 .5 .75 1 .940 .775 .55 .325 .160 .1 .1",
    ),
    "transformers cosine_warmup_with_min_lr .1": (
        {"lr_scheduler_type": "cosine", **ONE_STEP_EARLY, "min_lr_ratio": 0.1},
        ".25 .5 .75 1 .940 .775 .55 .325 .160 .1 .1 .1",
    ),
    "transformers WSD linear, D=3": (
        {"lr_scheduler_type": "wsd", **DECAY_3},
        "0 .25 .5 .75 1 1 1 1 .667 .333 0 0",
    ),
    "transformers WSD 1-sqrt, D=3": (
        {"lr_scheduler_type": "wsd", **DECAY_3, "lr_decay_style": "sqrt"},
        "0 .25 .5 .75 1 1 1 1 .423 .184 0 0",
    ),
    "transformers WSD cosine, D=3, r=.1": (
        {
            "lr_scheduler_type": "wsd",
            **DECAY_3,
            "lr_decay_style": "cosine",
            "min_lr_ratio": 0.1,
            "lr_warmup_init_ratio": 0.1,
        },
        ".1 .325 .55 .775 1 1 1 1 .775 .325 .1 .1",
    ),
    "verl WSD, stable .5": (
        {"lr_scheduler_type": "wsd", **DECAY_3, "lr_decay_style": "cosine"},
        "0 .25 .5 .75 1 1 1 1 .75 .25 0 0",
    ),
    "torchtitan linear": (
        {"lr_scheduler_type": "linear", **TITAN},
        ".25 .5 .75 1 1 .833 .667 .5 .333 .167 0 0",
    ),
    "torchtitan linear, r=.1": (
        {"lr_scheduler_type": "linear", **TITAN, "min_lr_ratio": 0.1},
        ".25 .5 .75 1 1 .85 .7 .55 .4 .25 .1 .1",
    ),
    "torchtitan WSD linear, ratio .3": (
        {"lr_scheduler_type": "wsd", **TITAN, "lr_decay_steps_ratio": 0.3},
        ".25 .5 .75 1 1 1 1 1 .667 .333 0 0",
    ),
    "torchtitan decay_ratio 0": (
        {"lr_scheduler_type": "wsd", **TITAN, "lr_decay_steps_ratio": 0.0},
        ".25 .5 .75 1 1 1 1 1 1 1 1 1",
    ),
    "torchtitan W = N": (
        {
            "lr_scheduler_type": "linear",
            "lr_warmup_steps": 10,
            "total_training_steps": 10,
            "zero_indexed_step": False,
        },
        ".1 .2 .3 .4 .5 .6 .7 .8 .9 1 1 1",
    ),
    "constant with warmup (transformers, verl)": (
        {"lr_scheduler_type": "constant", **WARMUP_4},
        "0 .25 .5 .75 1 1 1 1 1 1 1 1",
    ),
    "transformers inverse_sqrt": (
        {"lr_scheduler_type": "inverse_sqrt", **WARMUP_4, "total_training_steps": 12},
        "0 .25 .5 .75 1 .894 .816 .756 .707 .667 .632 .603",
    ),
    "transformers polynomial p=2, end .1": (
        {
            "lr_scheduler_type": "polynomial",
            **WARMUP_4,
            "lr_decay_power": 2.0,
            "min_lr_ratio": 0.1,
        },
        "0 .25 .5 .75 1 .725 .5 .325 .2 .125 .1 .1",
    ),
    "WSD exponential (Megatron's 2 * 0.5**u - 1)": (
        {"lr_scheduler_type": "wsd", **DECAY_3, "lr_decay_style": "exponential"},
        "0 .25 .5 .75 1 1 1 1 .587 .260 0 0",
    ),
}


FALLING = ["constant", "linear", "cosine", "wsd", "polynomial", "inverse_sqrt"]


def schedule_of(**settings: object):
    config = OptimConfig(**settings)
    return plan_schedule(config, config.total_training_steps, Problems("optim"))


@pytest.mark.parametrize("name", MEASURED)
def test_reproduces_the_measured_sequence(name: str) -> None:
    settings, factors = MEASURED[name]
    schedule = schedule_of(**settings)
    expected = [float(factor) for factor in factors.split()]
    assert [schedule.factor(k) for k in range(12)] == pytest.approx(expected, abs=5e-4)


def test_reference_row_of_a_cosine_with_a_floor() -> None:
    schedule = schedule_of(
        lr_scheduler_type="cosine",
        lr_warmup_steps=10,
        total_training_steps=110,
        min_lr_ratio=0.1,
    )
    steps = [0, 5, 10, 35, 60, 85]
    expected = [0, 0.5, 1.0, 0.8682, 0.55, 0.2318]
    assert [schedule.factor(k) for k in steps] == pytest.approx(expected, abs=5e-5)
    assert {schedule.factor(k) for k in (110, 111, 120, 500)} == {0.1}


@pytest.mark.parametrize(
    ("ratio", "total", "steps"),
    [
        (0.29, 100, 29),
        (0.285, 1000, 285),
        (0.1, 15, 2),
        (0.1, 14, 1),
        (0.0, 10, 0),
        (1.0, 7, 7),
        (0.5, 5, 3),
    ],
)
def test_a_ratio_becomes_steps_half_up(ratio: float, total: int, steps: int) -> None:
    assert steps_of(ratio, total) == steps


@given(
    name=st.sampled_from(FALLING),
    total=st.integers(1, 500),
    warmup_share=st.floats(0, 0.9),
    floor=st.floats(0, 1),
    init=st.floats(0, 1),
    zero_indexed=st.booleans(),
)
def test_factors_stay_between_floor_and_one_and_then_stand_still(
    name: str,
    total: int,
    warmup_share: float,
    floor: float,
    init: float,
    zero_indexed: bool,
) -> None:
    settings: dict[str, object] = {} if name == "constant" else {"min_lr_ratio": floor}
    schedule = schedule_of(
        lr_scheduler_type=name,
        total_training_steps=total,
        lr_warmup_steps=min(int(warmup_share * total), total - steps_of(0.1, total)),
        lr_warmup_init_ratio=init,
        zero_indexed_step=zero_indexed,
        **settings,
    )
    factors = [schedule.factor(k) for k in range(total + 20)]
    after = factors[schedule.warmup :]
    tiny = 1e-12
    assert all(min(init, floor) - tiny <= f <= 1 + tiny for f in factors)
    assert schedule.factor(schedule.warmup) == pytest.approx(1.0)
    assert after == sorted(after, reverse=True)
    assert factors[: schedule.warmup] == sorted(factors[: schedule.warmup])
    assert len(set(factors[total:])) == 1


def test_a_registered_schedule_reads_the_fields_that_it_names() -> None:
    def warmup_over_step(step: int, *, warmup: int) -> float:
        return math.sqrt(warmup / step)

    register_schedule("warmup_over_step")(warmup_over_step)
    config = OptimConfig(lr_scheduler_type="warmup_over_step", lr_warmup_steps=4)
    schedule = plan_schedule(config, -1, Problems("optim"))
    expected = "0 .25 .5 .75 1 .894 .816 .756 .707 .667 .632 .603"
    assert [schedule.factor(k) for k in range(12)] == pytest.approx(
        [float(f) for f in expected.split()], abs=5e-4
    )


def test_a_schedule_name_belongs_to_one_function() -> None:
    def cosine_of_mine(step: int) -> float:
        return 1.0 / (1 + step)

    with pytest.raises(NameTakenError) as caught:
        register_schedule("cosine")(cosine_of_mine)
    assert str(caught.value).startswith(
        "schedule 'cosine' is already optim_hydra.schedule.cosine; "
    )


def test_a_schedule_may_not_name_unknown_fields() -> None:
    def odd(step: int, *, power: float) -> float:
        return 1.0 / (1 + step) ** power

    with pytest.raises(TypeError, match="schedule 'odd' names power: a schedule reads"):
        register_schedule("odd")(odd)
