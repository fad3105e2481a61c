"""A load that fails says why on every process, and leaves every optimizer as it was."""

from __future__ import annotations

import pytest

NO_FILE = "FileNotFoundError(2, 'No such file or directory')"
RATES = (
    "lm_head.weight, token_embedding.weight, position_embedding.weight and 10 more",
    "blocks.0.attention.qkv.weight, blocks.0.attention.out.weight,"
    " blocks.0.mlp.0.weight and 1 more",
)
TRAINED = "was trained with torch.optim.adamw.AdamW, and now with torch.optim.adam.Adam"


def on_each(text: str) -> str:
    """Return what torch tells of two processes that failed in the same way."""
    return "\n".join(f"{rank}: {text.replace('RANK', str(rank))}" for rank in range(2))


def no_metadata(folder: str, why: str) -> str:
    return on_each(
        f'AssertionError("metadata is None; global metadata read failed: {why};'
        " rank local metadata read failed: [Errno 2] No such file or directory:"
        f" '/{folder}/__RANK.metadata'\")"
    )


def missing_key(key: str) -> str:
    key = f"Missing key in checkpoint state_dict: optimizer.state.{key}."
    return on_each(f"RuntimeError({key!r})")


def without(folder: str) -> str:
    return f"[Errno 2] No such file or directory: '/{folder}/.metadata'"


TOLD = {
    "shard_missing": on_each(NO_FILE),
    # The other process has read all that it needs by then.
    "first_shard_missing": f"0: {NO_FILE}",
    "shard_truncated": on_each("EOFError()"),
    "metadata_missing": no_metadata("metadata", without("metadata")),
    "metadata_truncated": no_metadata("half", "pickle data was truncated"),
    "no_folder": no_metadata("nowhere", without("nowhere")),
    "parameter_renamed": missing_key("head.weight.step"),
    "parameter_renamed_and_partly_loaded": "2 problems:\n"
    "  - the saved state has nothing for head.weight\n"
    "  - to start these without state: missing='fresh'",
    "other_shape": on_each(
        "ValueError('Size mismatch between saved torch.Size([11, 8]) and current:"
        " torch.Size([12, 8]) for optimizer.state.lm_head.weight.exp_avg')"
    ),
    "other_class": missing_key("lm_head.weight.momentum_buffer"),
    "other_class_with_the_same_keys": "7 problems:\n"
    f"  - lm_head.weight {TRAINED}\n"
    f"  - token_embedding.weight {TRAINED}\n"
    f"  - position_embedding.weight {TRAINED}\n"
    f"  - blocks.0.ln_1.weight {TRAINED}\n"
    f"  - blocks.0.ln_1.bias {TRAINED}\n"
    "  - and 12 more of these\n"
    "  - to start these without state: missing='fresh'",
    "strict_and_different": "3 problems:\n"
    f"  - lr: saved 0.01, now 0.5 ({RATES[0]})\n"
    f"  - lr: saved 0.005, now 0.25 ({RATES[1]})\n"
    "  - on_resume is strict: config keeps this run's settings, checkpoint takes the"
    " saved",
}


@pytest.fixture
def ran(found_in):
    """Return what both processes have found, by the name of a scenario."""
    return lambda scenario: found_in("failing_loads", 2, scenario)


@pytest.mark.parametrize("kind", ["trained", "untrained"])
@pytest.mark.parametrize("scenario", TOLD)
def test_a_load_that_fails_changes_nothing_on_any_process(
    scenario: str, kind: str, ran
) -> None:
    for results in ran(scenario):
        assert results[kind] == {
            "told": TOLD[scenario],
            "unchanged": True,
            "num_kept": 17 if kind == "trained" else 0,
        }


def test_what_nothing_is_wrong_with_is_loaded(ran) -> None:
    for results in ran("nothing_wrong"):
        for kind in ("trained", "untrained"):
            told = {"told": "loaded", "unchanged": False, "num_kept": 17}
            assert results[kind] == told


def test_copies_of_its_state_let_a_container_load_all_or_nothing(ran) -> None:
    for results in ran("container_all_or_nothing"):
        assert results == {
            "failed": on_each(NO_FILE),
            "unchanged": True,
            "succeeded": "loaded",
            "restored": True,
        }
