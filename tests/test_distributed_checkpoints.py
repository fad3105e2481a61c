"""What two processes saved is loaded on any number of them, by name and bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saved_training import assert_same

NAMES = 17
MATRICES = [
    "blocks.0.attention.qkv.weight",
    "blocks.0.attention.out.weight",
    "blocks.0.mlp.0.weight",
    "blocks.0.mlp.2.weight",
]
RATES = [
    "lm_head.weight, token_embedding.weight, position_embedding.weight and 10 more",
    "lm_head.weight, blocks.0.attention.qkv.weight, blocks.0.attention.out.weight",
    (
        "blocks.0.attention.qkv.weight, blocks.0.attention.out.weight,"
        " blocks.0.mlp.0.weight and 1 more"
    ),
]
TOLD = {
    "config": "restored the state of 17 parameters\n"
    f"  lr: saved 0.01, now 0.02 ({RATES[0]})\n"
    f"  weight_decay: saved 0.1, now 0.2 ({RATES[1]} and 2 more)\n"
    f"  lr: saved 0.005, now 0.01 ({RATES[2]})",
    "checkpoint": "restored the state of 17 parameters\n"
    f"  lr: 0.01 as saved, not 0.02 ({RATES[0]})\n"
    f"  weight_decay: 0.1 as saved, not 0.2 ({RATES[1]} and 2 more)\n"
    f"  lr: 0.005 as saved, not 0.01 ({RATES[2]})",
    "strict": "4 problems:\n"
    f"  - lr: saved 0.01, now 0.02 ({RATES[0]})\n"
    f"  - weight_decay: saved 0.1, now 0.2 ({RATES[1]} and 2 more)\n"
    f"  - lr: saved 0.005, now 0.01 ({RATES[2]})\n"
    "  - on_resume is strict: config keeps this run's settings, checkpoint takes the"
    " saved",
}
Loaded = Callable[[str, str, int], tuple[dict[str, Any], list[dict[str, Any]]]]


@pytest.fixture
def loaded(found_in) -> Loaded:
    """Return what two processes saved, and what each of some others made of it."""

    def load(name: str, scenario: str, num: int):
        saved, other = found_in("saving_runs", 2, name)
        assert saved == other
        return saved, found_in("loading_runs", num, scenario)

    return load


def state_in(kept: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in kept.items() if key.startswith("state.")}


@pytest.mark.parametrize(
    ("name", "scenario", "num"),
    [
        ("grouped", "grouped", 1),
        ("grouped", "grouped_into_whole", 1),
        ("grouped", "grouped", 2),
        ("grouped", "grouped", 3),
        ("grouped", "saved_by_two_then_one", 2),
        ("replicated", "replicated_into_whole", 1),
        ("replicated", "replicated", 2),
        ("replicated", "replicated_into_sharded", 2),
    ],
)
def test_what_two_processes_saved_is_the_same_elsewhere(
    name: str, scenario: str, num: int, loaded: Loaded
) -> None:
    saved, found = loaded(name, scenario, num)
    for results in found:
        assert results["report"] == f"restored the state of {NAMES} parameters"
        assert_same(results["loaded"], saved["saved"])
    keys = {key.rpartition(".")[2] for key in state_in(saved["saved"])}
    assert keys == {"step", "exp_avg", "exp_avg_sq"}
    assert len(state_in(saved["saved"])) == 3 * NAMES


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("grouped", "grouped"),
        ("grouped", "saved_by_two_then_one"),
        ("replicated", "replicated"),
    ],
)
def test_two_processes_go_on_bit_for_bit_as_if_nothing_had_happened(
    name: str, scenario: str, loaded: Loaded
) -> None:
    saved, found = loaded(name, scenario, 2)
    for results in found:
        assert_same(results["went_on"], saved["went_on"])
        assert results["went_on"] != results["loaded"]


@pytest.mark.parametrize(
    ("name", "scenario", "num"),
    [
        ("grouped", "grouped", 1),
        ("grouped", "grouped_into_whole", 1),
        ("grouped", "grouped", 3),
        ("replicated", "replicated_into_whole", 1),
        ("replicated", "replicated_into_sharded", 2),
    ],
)
def test_others_go_on_up_to_the_order_of_sums(
    name: str, scenario: str, num: int, loaded: Loaded
) -> None:
    saved, found = loaded(name, scenario, num)
    for results in found:
        assert results["values"] == pytest.approx(saved["values"], rel=0, abs=1e-11)
        assert results["went_on"] == found[0]["went_on"]


@pytest.mark.parametrize("policy", ["config", "checkpoint", "strict"])
def test_settings_follow_the_policy_on_every_process(
    policy: str, loaded: Loaded
) -> None:
    saved, found = loaded("grouped", "policies", 2)
    for results in (each[policy] for each in found):
        assert results["told"] == TOLD[policy]
        if policy == "strict":
            assert results["state"] == {}
            assert results["settings"] == results["before"]
            continue
        assert_same(results["state"], state_in(saved["saved"]))
        before = results["before"] if policy == "config" else saved["saved"]
        settings = results["settings"]
        ours = {k: v for k, v in settings.items() if not k.endswith(".lr")}
        assert_same(ours, {key: before[key] for key in ours})
        # The schedule is at step 3 of 12, the second after its warmup.
        factor = 0.9755282581475768
        lr = 0.02 if policy == "config" else 0.01
        head = float(settings["param_groups.lm_head.weight.lr"])
        assert head == pytest.approx(lr * factor, rel=1e-15)
        for name in MATRICES:
            rate = float(settings[f"param_groups.{name}.lr"])
            assert rate == pytest.approx(lr / 2 * factor, rel=1e-15)


@pytest.mark.parametrize("num", [1, 2])
def test_one_group_becomes_several_on_any_number_of_processes(
    num: int, loaded: Loaded
) -> None:
    saved, found = loaded("ungrouped", "regrouped", num)
    for results in found:
        assert_same(results["state"], state_in(saved["saved"]))
        assert len(results["state"]) == 3 * NAMES
        rows = [(r["lr"], r["weight_decay"], r["names"]) for r in results["groups"]]
        assert [(lr, decay, len(names)) for lr, decay, names in rows] == [
            (0.0025, 0.0, 2),
            (0.005, 0.1, 4),
            (0.005, 0.0, 8),
            (0.01, 0.1, 1),
            (0.01, 0.0, 2),
        ]
        assert results["values"] == found[0]["values"]
    _, alone = loaded("ungrouped", "regrouped", 1)
    expected = pytest.approx(alone[0]["values"], rel=0, abs=1e-11)
    assert found[0]["values"] == expected


@pytest.mark.parametrize("num", [1, 2])
def test_matrices_go_to_muon_afresh_on_any_number_of_processes(
    num: int, loaded: Loaded
) -> None:
    saved, found = loaded("ungrouped", "regrouped_with_muon", num)
    was = "was trained with torch.optim.adamw.AdamW, and now with torch.optim.Muon"
    refused = [*(f"{name} {was}" for name in MATRICES)]
    refused.append("to start these without state: missing='fresh'")
    expected = state_in(saved["saved"])
    rest = {k: v for k, v in expected.items() if not k.startswith(_starts("state."))}
    for results in found:
        assert results["refused"] == "\n  - ".join(["5 problems:", *refused])
        assert results["untouched"] is True
        first, difference = results["report"].splitlines()
        assert first == (
            "restored the state of 13 parameters, started"
            " blocks.0.attention.qkv.weight, blocks.0.attention.out.weight,"
            " blocks.0.mlp.0.weight and 1 more without state"
        )
        assert difference.startswith("  weight_decay: saved 0.1, now 0.0 (blocks.0.ln")
        assert_same(results["state"], rest)
        buffers = [key for key in results["after"] if key.endswith("momentum_buffer")]
        assert buffers == [f"state.{name}.momentum_buffer" for name in sorted(MATRICES)]
        assert len(results["after"]) == 3 * 13 + 4


def _starts(before: str) -> tuple[str, ...]:
    return tuple(f"{before}{name}." for name in MATRICES)
