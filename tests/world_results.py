"""Run programs on numbers of processes, one after another, and read what they found."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from filelock import FileLock

from warm_python import Warm

__all__ = ["read"]

TESTS = Path(__file__).parent
ENVIRONMENT = {
    "GLOO_SOCKET_IFNAME": "lo",
    "MASTER_ADDR": "127.0.0.1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)]),
    "TORCHDYNAMO_DISABLE": "1",
}
# What runs together, in this order: a program finds what those before it have saved.
CHAINS = {
    "wrappers": ["replicated_training@2", "sharded_training@2", "sharded_watching@2"],
    "runs": ["saving_runs@2", "loading_runs@1", "loading_runs@2", "loading_runs@3"],
    "classes": ["resuming_classes@2"],
    "faults": ["interrupted_saves@2", "failing_loads@2", "pipeline_stages@2"],
}


def read(
    shared: Path, warm: Warm, program: str, num: int, scenario: str
) -> list[dict[str, Any]]:
    """Return what each process has found in a scenario of a program.

    The chain that the program belongs to is run, unless its results are there.
    """
    step = f"{program}@{num}"
    (chain,) = (name for name, steps in CHAINS.items() if step in steps)
    folder = shared / chain
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            folder.mkdir()
            _launch(warm, CHAINS[chain], folder)
    assert (folder / "status").read_text() == "0", (folder / "log").read_text()
    paths = [folder / step / f"{rank}.json" for rank in range(num)]
    found = [json.loads(path.read_text())[scenario] for path in paths]
    for outcome in found:
        assert "error" not in outcome, outcome["error"]
    return found


def _launch(warm: Warm, steps: list[str], folder: Path) -> None:
    path = TESTS / "distributed_programs" / "worlds.py"
    environment = {**os.environ, **ENVIRONMENT}
    result = warm.run(folder, [str(path), str(folder), *steps], folder, environment)
    (folder / "log").write_text(result.stdout + result.stderr)
    (folder / "status").write_text(str(result.returncode))
