"""The report page is one file that holds everything, escaped, thinned and ranked."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.page_curves import NUM_POINTS, packed_curves, thinned
from optim_hydra.sweep.page_data import shown
from optim_hydra.sweep.results import SweepResults
from optim_hydra.sweep.seeds import over_seeds, ranked_jobs, setting_keys
from sweep_samples import TRACE, UNREAL, actor_critic, many_jobs

HOSTILE = (
    "</script><script>alert('&')</script><img src=http://x.example/y onerror=alert(1)>"
)
LIBRARIES = ("plotly", "tables", "tables-style")


class Page(HTMLParser):
    """What a browser finds in the file: elements with attributes, and visible text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] not in {"script", "style"}:
            self.text += f" {data} "

    def block(self, name: str) -> bytes:
        found = re.search(rf'id="{name}">([^<]*)</script>', self.source)
        assert found is not None, name
        return gzip.decompress(base64.b64decode(found[1]))

    def data(self) -> dict[str, Any]:
        return json.loads(self.block("data"))

    def without_blocks(self) -> str:
        return re.sub(r'<script type="application/gzip".*?</script>', "", self.source)


def written(results: SweepResults, folder: Path) -> Page:
    path = folder / "report.html"
    write_page(results, path)
    assert [file.name for file in folder.iterdir()] == ["report.html"]
    return Page(path)


def changed(results: SweepResults, **columns: list[Any]) -> SweepResults:
    return dataclasses.replace(results, jobs=results.jobs.assign(**columns))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return written(actor_critic(), tmp_path_factory.mktemp("page"))


def test_the_header_names_the_sweep_its_jobs_and_the_best_setting(page: Page) -> None:
    text = " ".join(page.text.split())
    assert text.startswith(
        "actor_critic 2026-11-30 21:20 Sweep report actor_critic 2026-11-30 21:20 "
        "12 jobs 9 completed 3 failed "
        # A seed of sgd has 530: the best is the mean of adamw, not the luckiest job.
        "Best result, higher is better 490 ± 20 mean of 3 seeds "
        "optim@critic.optim adamw actor.optim AdamW(lr=0.0003, weight_decay=0) "
        "critic.optim AdamW(lr=0.001, weight_decay=0.01 decoupled) "
        "Leaderboard Over seeds Curves Rates Failed"
    )


def test_the_page_addresses_nothing_outside_itself(page: Page) -> None:
    assert re.findall(r"https?:|//\w", page.without_blocks()) == []
    for tag, attributes in page.elements:
        assert not {"src", "srcset", "data", "action"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#"), tag
        assert tag not in {"link", "iframe", "object", "embed", "base", "img"}
    policy = next(
        attributes["content"]
        for tag, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "*" not in policy


def test_the_libraries_are_inside(page: Page) -> None:
    assert b"Plotly" in page.block("plotly")
    assert b"DataTables" in page.block("tables")
    assert b"dataTable" in page.block("tables-style")


def test_the_data_has_the_jobs_in_the_order_of_their_rank(page: Page) -> None:
    data = page.data()
    jobs = data["jobs"]
    expected = ["3", "2", "1", "0", "6", "7", "11", "9", "10", "4", "5", "8"]
    assert jobs["job"] == expected
    assert data["ranks"] == [1, 2, 3, 4, 5, 6, 7, 8, 9, None, None, None]
    assert jobs["result"][-4:] == [200.0, None, None, None]
    assert jobs["status"][-4:] == ["completed", "failed", "failed", "failed"]


def test_failures_with_one_message_are_together(page: Page) -> None:
    data = page.data()
    names = data["jobs"]["job"]
    found = [
        (row["title"], row["error"], [names[i] for i in row["jobs"]])
        for row in data["failures"]
    ]
    assert found == [
        ("FloatingPointError: loss is nan at step 312", TRACE, ["4", "5"]),
        (UNREAL, UNREAL, ["8"]),
    ]


def test_the_data_has_the_curves_of_every_job(page: Page) -> None:
    data = page.data()
    steps = np.frombuffer(page.block("steps"), "<f8")
    values = np.frombuffer(page.block("values"), "<f4")
    results = actor_critic()
    assert sorted(data["curves"]) == sorted(results.curves["metric"].unique())
    for metric, places in data["curves"].items():
        of_metric = results.curves[results.curves["metric"] == metric]
        assert [place for place, _, _ in places] == list(range(12))
        for place, first, count in places:
            job = data["jobs"]["job"][place]
            rows = of_metric[of_metric["job"] == job]
            logged = rows.set_index("step")["value"].astype(np.float32)
            kept = slice(first, first + count)
            assert count <= NUM_POINTS
            assert logged[steps[kept]].tolist() == values[kept].tolist()
            assert values[kept].min() == logged.min()
            assert values[kept].max() == logged.max()
            assert steps[kept][[0, -1]].tolist() == [logged.index[0], logged.index[-1]]


def test_everything_is_escaped(tmp_path: Path) -> None:
    results = actor_critic(num_points=3)
    jobs = results.jobs.rename(
        columns={"seed": f"{HOSTILE}.seed", "optim@critic.optim": HOSTILE}
    )
    for name in ("error", "folder", "command", "actor.optim", HOSTILE):
        jobs[name] = HOSTILE
    hostile = SweepResults(
        title=HOSTILE,
        direction="maximize",
        jobs=jobs,
        swept=[HOSTILE, f"{HOSTILE}.seed"],
        nodes=results.nodes,
        curves=results.curves.assign(metric=HOSTILE),
    )
    page = written(hostile, tmp_path)
    tags = [tag for tag, _ in page.elements]
    blocks = (*LIBRARIES, "data", "steps", "values")
    assert tags.count("script") == len(blocks) + len(["the program"])
    assert "img" not in tags
    assert page.text.count(HOSTILE) == len(["title", "heading", "key", "value", "node"])


@pytest.mark.parametrize("name", ["</script>", "$title", "${best}", "$$", "%{x}"])
def test_a_title_stands_in_the_page_as_it_is(name: str, tmp_path: Path) -> None:
    results = dataclasses.replace(actor_critic(num_points=2), title=name)
    assert written(results, tmp_path).text.count(name) == 2


def test_the_same_results_give_the_same_bytes(page: Page, tmp_path: Path) -> None:
    assert written(actor_critic(), tmp_path).source == page.source


def test_a_page_replaces_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("an older report")
    assert "an older report" not in written(actor_critic(2), tmp_path).source


def test_a_sweep_without_jobs_has_a_page(tmp_path: Path) -> None:
    results = actor_critic(num_points=2)
    empty = dataclasses.replace(
        results, jobs=results.jobs.iloc[:0], curves=results.curves.iloc[:0]
    )
    page = written(empty, tmp_path)
    assert "0 jobs" in " ".join(page.text.split())
    assert "No job has a result yet (higher is better)." in page.text
    assert page.data()["settings"] == []


def test_a_sweep_without_seeds_speaks_of_settings(tmp_path: Path) -> None:
    results = actor_critic(num_points=2)
    alone = dataclasses.replace(
        results,
        jobs=results.jobs[results.jobs["seed"] == 0].reset_index(drop=True),
        swept=["optim@critic.optim"],
    )
    page = written(alone, tmp_path)
    assert "No seed was swept, so a setting has one result and no spread" in page.text
    assert "mean of" not in page.text.split("Leaderboard")[0]


def test_ten_thousand_jobs_fit(tmp_path: Path) -> None:
    page = written(many_jobs(10_000, num_points=60), tmp_path)
    data = page.data()
    assert len(data["jobs"]["job"]) == 10_000
    assert len(data["settings"]) == 2_500
    counts = [count for places in data["curves"].values() for *_, count in places]
    assert len(counts) == 20_000
    assert sum(counts) < 700_000
    assert len(page.source) < 10_000_000


# Thinning.


@given(
    values=arrays.arrays(
        np.float64,
        st.integers(1, 3000),
        elements=st.floats(-1e6, 1e6) | st.just(math.nan),
    ),
    limit=st.integers(12, 200),
)
def test_thinning_keeps_the_ends_and_the_extremes(values, limit: int) -> None:
    kept = thinned(values, limit)
    assert len(kept) <= limit
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    assert (np.diff(kept) > 0).all()
    real = values[~np.isnan(values)]
    if len(real):
        chosen = values[kept]
        assert np.nanmin(chosen) == real.min()
        assert np.nanmax(chosen) == real.max()


def test_short_curves_are_kept_whole_and_inf_is_a_gap() -> None:
    curves = pd.DataFrame(
        {
            "job": ["b", "a", "b", "gone"],
            "metric": "loss",
            "step": [20, 5, 10, 1],
            "value": [math.inf, 3.0, 2.0, 9.0],
        }
    )
    packed = packed_curves(curves, ["a", "b"])
    assert packed.places == {"loss": [(0, 0, 1), (1, 1, 2)]}
    assert packed.steps.tolist() == [5.0, 10.0, 20.0]
    assert packed.values[:2].tolist() == [3.0, 2.0]
    assert math.isnan(packed.values[2])


# Ranks.


def test_seeds_are_joined_and_failed_settings_come_last() -> None:
    found = [
        (s.values, s.mean, round(s.std, 3), s.num_results, s.num_failed, s.rows)
        for s in over_seeds(actor_critic(num_points=2))
    ]
    assert found[0] == (("adamw",), 490.0, 20.0, 3, 0, [0, 1, 2])
    assert found[1] == (("rmsprop",), 220.0, 20.0, 3, 0, [9, 10, 11])
    assert found[2][:2] == (("sgd",), 530.0)
    assert math.isnan(found[2][2])
    assert found[2][3:] == (1, 2, [3, 4, 5])
    assert found[3] == (("lion",), 305.0, 7.071, 2, 1, [6, 7, 8])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_what_is_no_number_never_wins(direction: str, value: float) -> None:
    results = actor_critic(num_points=2)
    odd = [value, *results.jobs["result"][1:]]
    ranked = ranked_jobs(
        dataclasses.replace(changed(results, result=odd), direction=direction)
    )
    assert [row for row, _ in ranked[-4:]] == [0, 4, 5, 8]
    assert all(math.isnan(result) for _, result in ranked[-4:])
    expected = 10 if direction == "minimize" else 3
    assert ranked[0][0] == expected


def test_a_result_of_an_unfinished_job_does_not_count() -> None:
    results = actor_critic(num_points=2)
    status = ["running", "failed", *results.jobs["status"][2:]]
    adamw = next(
        setting
        for setting in over_seeds(changed(results, status=status))
        if setting.values == ("adamw",)
    )
    assert (adamw.mean, adamw.num_results, adamw.num_failed) == (510.0, 1, 1)


def test_of_equal_jobs_one_counts_and_a_repetition_replaces_a_failure() -> None:
    results = actor_critic(num_points=2)
    # Job 1 repeats job 0, and job 3 repeats job 4, which failed.
    same = ["", "0", "", "4", *results.jobs["same_as"][4:]]
    by_name = {s.values: s for s in over_seeds(changed(results, same_as=same))}
    adamw, sgd = by_name["adamw",], by_name["sgd",]
    assert (adamw.mean, adamw.num_results) == (490.0, 2)
    assert (sgd.mean, sgd.num_results, sgd.num_failed) == (530.0, 1, 1)


def test_seeds_of_nodes_are_seeds_and_a_key_that_one_sweep_lacks_is_none() -> None:
    assert setting_keys(["seed", "env.seed", "seeds", "lr"]) == ["seeds", "lr"]
    results = actor_critic(num_points=2)
    jobs = results.jobs.assign(lr=[0.1] * 6 + [math.nan] * 6)
    merged = dataclasses.replace(results, jobs=jobs, swept=["lr", "seed"])
    assert [s.values for s in over_seeds(merged)] == [(0.1,), (None,)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0012345, "0.001234"),
        (490.04321, "490"),
        (12345.678, "12350"),
        (123456.7, "123500"),
        (1234567.8, "1.235e6"),
        (3e-05, "3e-5"),
        (-2.5e-7, "-2.5e-7"),
        (16_777_217, "16777217"),
        (200.0, "200"),
        (0.0, "0"),
        (True, "True"),
        (None, "-"),
        (math.nan, "nan"),
        ("1e-3", "1e-3"),
    ],
)
def test_numbers_have_four_digits_and_whole_numbers_all(value, text: str) -> None:
    assert shown(value) == text
