"""What two processes must have found: the same as one."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["Found", "assert_clipped", "assert_like_one_process", "groups"]

# One item for each process.
Found = tuple[dict[str, Any], dict[str, Any]]


def assert_like_one_process(found: Found) -> None:
    """Groups, norms and parameters are those of one process, in both."""
    for results in found:
        alone, together = results["alone"], results["together"]
        assert by_name(together["groups"]) == by_name(alone["groups"])
        norms = alone["norms"]
        expected = norms if None in norms else pytest.approx(norms, rel=1e-9)
        assert together["norms"] == expected
        assert together["values"] == pytest.approx(alone["values"], abs=1e-9)
        assert together["values"] != pytest.approx(results["start"], abs=1e-3)
    assert found[0]["together"] == found[1]["together"]


def assert_clipped(found: Found) -> None:
    """Each step had larger gradients than the 0.1 that they were clipped to."""
    for results in found:
        norms = results["together"]["norms"]
        assert len(norms) == 3
        assert all(type(norm) is float for norm in norms)
        assert min(norms) > 0.2


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the values of each parameter: plain and sharded ones have own groups."""
    kept = ("class", "rule", "lr", "weight_decay")
    return {
        name: {key: row[key] for key in kept} for row in rows for name in row["names"]
    }


def groups(found: Found) -> list[tuple[str, str, int]]:
    counts: dict[tuple[str, str], int] = {}
    for row in found[0]["together"]["groups"]:
        key = (row["class"], row["rule"])
        counts[key] = counts.get(key, 0) + len(row["names"])
    return [(*key, number) for key, number in counts.items()]
