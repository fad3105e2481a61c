"""One command measures everything, and writes to the README only when it has all."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


def test_a_smoke_run_prints_the_rows_with_a_wanted_ratio(tmp_path, run_python) -> None:
    script = str(BENCHMARKS / "suite.py")
    before = (ROOT / "README.md").read_text()
    result = run_python(script, "--quick", "container_step", "--json", "found.json")
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found.keys() == {"container_step"}
    for row in found["container_step"]["results"]:
        assert row["wanted"] is not None
        assert row["name"] in result.stdout
    assert (ROOT / "README.md").read_text() == before


def test_the_readme_shows_the_results_that_are_kept() -> None:
    found = json.loads((BENCHMARKS / "results.json").read_text())
    results = [row for each in found.values() for row in each["results"]]
    wanted = [row for row in results if row["wanted"] is not None]
    text = (ROOT / "README.md").read_text()
    table = text.partition("<!-- benchmarks/suite.py: -->")[2]
    lines = table.partition("<!-- :benchmarks/suite.py -->")[0].splitlines()
    shown = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert shown[2:] == [
        [
            row["name"],
            row["against"],
            f"{row['ratio']:.3g}",
            f"{row['low']:.3g} - {row['high']:.3g}",
            f"{row['wanted']:g}",
        ]
        for row in wanted
    ]
