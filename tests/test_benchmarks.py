"""The measurements under benchmarks/ run, and write what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


SCRIPTS = [
    "build_groups.py",
    "checkpoint_file.py",
    "container_step.py",
    "implementations.py",
    "node_to_optimizer.py",
    "optimizer_state.py",
    "startup.py",
    "step_in_backward.py",
]
# Above which share the other side needs more memory, and which ours stays under.
PEAKS = {"optimizer_state.py": (0.5, 1.5), "step_in_backward.py": (0.0, 0.6)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_smoke_run_compares_every_pair(script: str, tmp_path, run_python) -> None:
    result = run_python(str(BENCHMARKS / script), "--quick", "--json", "report.json")
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["is_quick"] is True
    assert len(report["results"]) >= 2
    for row in report["results"]:
        assert row["rounds"] == 2
        assert min(row["ours_ms"], row["other_ms"], row["ratio"]) > 0
        assert row["name"].split()[0] in result.stdout
    assert len(report["peaks"]) == (script in PEAKS)
    for row in report["peaks"]:
        # One copy of the state; the other side makes gradients and a state first. One
        # gradient at a time; the other side keeps all.
        low, high = PEAKS[script]
        assert low < row["ours_ratio"] < min(high, row["other_ratio"])


def test_a_smoke_run_of_sweeps_compares_both_programs(tmp_path, run_python) -> None:
    script = str(BENCHMARKS / "sweep_overhead.py")
    result = run_python(script, "--quick", "--json", "report.json", "basic")
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [row["name"] for row in report["results"]] == [
        "basic, CPU of a job",
        "basic, time of a job",
        "basic, time around",
    ]
    for row in report["results"]:
        assert row["name"] in result.stdout
        assert min(row["ours_ms"], row["other_ms"]) > 0
        assert row["low"] <= row["ratio"] <= row["high"]


def test_a_smoke_run_reports_sweeps_of_two_sizes(tmp_path, run_python) -> None:
    script = str(BENCHMARKS / "report_many_jobs.py")
    result = run_python(script, "--quick", "--json", "report.json")
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "report.json").read_text())["results"]
    assert [row["jobs"] for row in rows] == [20, 40]
    for row in rows:
        assert min(row["collect_s"], row["tables_s"], row["page_s"]) > 0
        assert 1 < row["page_mb"] < 10  # most of it is the libraries
