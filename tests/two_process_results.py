"""Run a program in two processes, and read what each of them has found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

__all__ = ["Found", "assert_clipped", "assert_like_one_process", "groups", "read"]

TESTS = Path(__file__).parent
LAUNCH = "torch.distributed.run --standalone --local-addr 127.0.0.1 --nproc-per-node 2"
ENVIRONMENT = {
    "GLOO_SOCKET_IFNAME": "lo",
    "MASTER_ADDR": "127.0.0.1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
}
# One item for each process.
Found = tuple[dict[str, Any], dict[str, Any]]


def read(shared: Path, program: str, scenario: str) -> Found:
    """Run a program, unless its results are there, and return those of a scenario."""
    folder = shared / program
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            _launch(program, folder)
    assert (folder / "status").read_text() == "0", (folder / "log").read_text()
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    first, second = (results[scenario] for results in found)
    for outcome in (first, second):
        assert "error" not in outcome, outcome["error"]
    return first, second


def _launch(program: str, folder: Path) -> None:
    path = TESTS / "distributed_programs" / f"{program}.py"
    result = subprocess.run(
        [sys.executable, "-m", *LAUNCH.split(), path, folder],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    (folder / "log").write_text(result.stdout + result.stderr)
    (folder / "status").write_text(str(result.returncode))


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
