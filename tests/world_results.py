"""Run programs on numbers of processes, one after another, and read what they found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from filelock import FileLock

from two_process_results import ENVIRONMENT, TESTS

__all__ = ["read"]

# What runs together, in this order: a program finds what those before it have saved.
CHAINS = {
    "runs": ["saving_runs@2", "loading_runs@1", "loading_runs@2", "loading_runs@3"],
    "classes": ["resuming_classes@2"],
    "faults": ["interrupted_saves@2", "failing_loads@2", "pipeline_stages@2"],
}


def read(shared: Path, program: str, num: int, scenario: str) -> list[dict[str, Any]]:
    """Return what each process has found in a scenario of a program.

    The chain that the program belongs to is run, unless its results are there.
    """
    step = f"{program}@{num}"
    (chain,) = (name for name, steps in CHAINS.items() if step in steps)
    folder = shared / chain
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            _launch(CHAINS[chain], folder)
    assert (folder / "status").read_text() == "0", (folder / "log").read_text()
    paths = [folder / step / f"{rank}.json" for rank in range(num)]
    found = [json.loads(path.read_text())[scenario] for path in paths]
    for outcome in found:
        assert "error" not in outcome, outcome["error"]
    return found


def _launch(steps: list[str], folder: Path) -> None:
    path = TESTS / "distributed_programs" / "worlds.py"
    result = subprocess.run(
        [sys.executable, path, folder, *steps],
        env={**os.environ, **ENVIRONMENT, "TORCHDYNAMO_DISABLE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    (folder / "log").write_text(result.stdout + result.stderr)
    (folder / "status").write_text(str(result.returncode))
