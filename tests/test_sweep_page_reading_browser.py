"""What a reader takes from the page in a browser is true, and can be seen."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.results import SweepResults
from sweep_browser import DESKTOP, NEEDS_BROWSER, PHONE, running_browser, visits
from sweep_samples import actor_critic

pytestmark = NEEDS_BROWSER
LONG = "critic.optim.override_optimizer_config"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, tmp_path: Path):
    with visits(browser, tmp_path) as visit:
        yield visit


def with_curves(results: SweepResults, *jobs: str) -> SweepResults:
    """Leave the curves of some jobs alone."""
    curves = results.curves[results.curves["job"].isin(jobs)].reset_index(drop=True)
    return dataclasses.replace(results, curves=curves)


@pytest.mark.parametrize("value", [0.001, -250.0, 3e-7])
def test_a_constant_lies_in_the_middle_of_an_axis_of_its_size(
    visit, value: float
) -> None:
    results = actor_critic(num_points=20)
    curves = results.curves.assign(value=value)
    jobs = results.jobs.assign(result=results.jobs["result"] * 0 + value)
    report = visit(dataclasses.replace(results, jobs=jobs, curves=curves))
    expected = pytest.approx(sorted([0, 2 * value]))
    for form in ("mean", "jobs"):
        report.page.select_option("#form", form)
        for chart in ("curves", "rate-curves"):
            assert report.axis("yaxis.range", chart) == expected, (form, chart)
    assert report.axis("xaxis.range", "spread") == expected
    report.page.select_option("#rate", "lr.critic.0")
    report.page.check("#rate-log")
    low, high = report.axis("yaxis.range", "rate-curves") if value > 0 else (-1, 1)
    assert value < 0 or low < np.log10(value) < high


def test_the_counts_are_of_the_lines_that_are_drawn(visit) -> None:
    # sgd has one job that did not fail, lion and rmsprop have no curves at all.
    report = visit(with_curves(actor_critic(num_points=20), "0", "1", "2", "3", "4"))
    drawn, page = report.page.locator("#drawn"), report.page
    assert report.lines() == ["adamw · mean of 3", "sgd · one job"]
    assert drawn.inner_text().startswith(
        "2 of 4 settings are drawn: of the best 20 in the leaderboard, as filtered, and"
        " of those selected in it, what has values of episode_return and is not struck"
        " out below. Failed jobs are not in a mean; "
    )
    page.select_option("#form", "jobs")
    assert len(report.lines()) == 5
    assert drawn.inner_text() == (
        "5 of 12 jobs are drawn: of the first 60 of the leaderboard, as filtered and"
        " sorted, and of those selected in it, what has values of episode_return and is"
        " not struck out below."
    )
    page.locator("#legend").get_by_role("button", name="adamw").click()
    report.settle()
    assert drawn.inner_text().startswith("2 of 12 jobs are drawn")
    report.search("rmsprop")
    report.settle()
    assert drawn.inner_text().startswith("0 of 12 jobs are drawn")


def test_values_that_were_not_set_are_blank_and_keys_are_named(visit) -> None:
    results = actor_critic(num_points=5)
    jobs = results.jobs.astype({"seed": object})
    jobs["width"] = [64.0] * 6 + [np.nan] * 6
    jobs["act"] = [""] * 9 + ["relu"] * 3
    jobs.loc[jobs.index[9:], "seed"] = None
    swept = ["optim@critic.optim", "width", "act", "seed"]
    report = visit(dataclasses.replace(results, jobs=jobs, swept=swept))
    report.page.select_option("#form", "jobs")
    lines = report.lines()
    assert "job 3 · optim=sgd · width=64 · seed 0" in lines
    assert "job 6 · optim=lion · seed 0" in lines
    assert "job 9 · optim=rmsprop · act=relu" in lines
    report.sort("act")
    assert report.column("act") == ["relu"] * 3 + [""] * 9
    assert report.column("seed")[:3] == [""] * 3
    legend = report.page.locator("#legend .entry", has_text="rmsprop")
    assert legend.locator("button.job").all_inner_texts() == ["9", "10", "11"]
    legend = report.page.locator("#legend .entry", has_text="lion")
    assert legend.locator("button.job").all_inner_texts() == ["0", "1", "2"]


def long_settings() -> SweepResults:
    results = actor_critic(num_points=20)
    long = [f"{{betas:[0.9,0.99],k{i % 3}:{'x' * 60}}}" for i in range(12)]
    jobs = results.jobs.assign(**{LONG: long})
    swept = ["optim@critic.optim", LONG, "seed"]
    return dataclasses.replace(results, jobs=jobs, swept=swept)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_table_that_goes_on_shows_it_and_a_status_is_seen_at_once(
    visit, size: tuple[int, int]
) -> None:
    report = visit(long_settings(), size)
    box = report.page.locator("#leaderboard .dt-layout-table > .dt-layout-cell")
    wide, visible = box.evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert wide > visible
    bar = box.evaluate("box => box.offsetHeight - box.clientHeight")
    assert bar >= 8  # a scroll bar with a place of its own
    shadow = box.evaluate("box => getComputedStyle(box).backgroundAttachment")
    assert shadow == "local, local, scroll, scroll"
    right = box.evaluate("box => box.getBoundingClientRect().right")
    head = report.page.locator("#jobs thead th")
    for name in ("result", "status"):
        place = head.get_by_text(name, exact=True).bounding_box()
        assert place["x"] + place["width"] <= right, name
    if size == DESKTOP:
        place = head.get_by_text("seed", exact=True).bounding_box()
        assert place["x"] + place["width"] <= right
    # A long value is wrapped, none of it is cut.
    cell = report.page.locator("#jobs td.setting", has_text="betas").first
    wide, visible = cell.evaluate("cell => [cell.scrollWidth, cell.clientWidth]")
    assert wide <= visible <= 261
    assert report.overflow() == 0


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_no_line_of_the_legend_is_cut(visit, size: tuple[int, int]) -> None:
    report = visit(long_settings(), size)
    report.page.select_option("#form", "jobs")
    report.settle()
    bottom, ends, whole = report.page.locator("#legend").evaluate(
        """box => {
            const {bottom} = box.getBoundingClientRect();
            const edges = [...box.children].map(each => each.getBoundingClientRect());
            const ends = edges.map(({top, bottom}) => [top, bottom]);
            return [bottom, ends, box.scrollHeight];
        }"""
    )
    assert [end for end in ends if end[0] < bottom - 1 and end[1] > bottom + 1] == []
    assert whole > 300  # there is more than is seen


def test_sections_say_that_they_load_until_they_have(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    write_page(actor_critic(num_points=5), path)
    text = path.read_text(encoding="utf-8")
    content = (
        "[...document.querySelectorAll('section')].map("
        "section => getComputedStyle(section, '::after').content)"
    )
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]:not(.loading)")
        assert page.evaluate(content) == ["none"] * 5
        # As it is before the program has run, and as it is where that can't.
        path.write_text(text.replace("main().catch", "(async () => {})().catch", 1))
        path.write_text(re.sub(r"\.finally\(.*", ";", path.read_text(), count=1))
        page.goto(path.as_uri())
        assert page.evaluate(content) == ['"Loading…"'] * 5
        path.write_text(text.replace("await import(", "await broken(", 1))
        page.goto(path.as_uri())
        page.wait_for_selector("#trouble:not([hidden])")
        assert page.evaluate(content) == ["none"] * 5
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        assert page.locator("#no-script").is_visible()
