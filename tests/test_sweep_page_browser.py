"""The report page works in a real browser: tables, charts, buttons, phones, offline."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.results import SweepResults
from sweep_browser import (
    DESKTOP,
    NEEDS_BROWSER,
    PHONE,
    Report,
    running_browser,
    visits,
)
from sweep_samples import TRACE, actor_critic, many_jobs

pytestmark = NEEDS_BROWSER
HOSTILE = "<img src=x onerror=\"document.title='run'\"> %{x} &amp; </script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser, tmp_path: Path):
    with visits(browser, tmp_path) as visit:
        yield visit


@pytest.fixture(scope="module")
def opened(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Report]:
    """Return an open report, for tests that leave its rows and lines as they were."""
    path = tmp_path_factory.mktemp("opened") / "report.html"
    write_page(actor_critic(), path)
    with browser.new_context(
        viewport={"width": DESKTOP[0], "height": DESKTOP[1]}
    ) as context:
        report = Report(context, path)
        yield report
        report.check()


def test_the_leaderboard_sorts_by_any_column_and_keeps_empty_cells_last(visit) -> None:
    report = visit()
    ranked = ["3", "2", "1", "0", "6", "7", "11", "9", "10", "4", "5", "8"]
    assert report.column("job") == ranked
    assert report.column("result")[-4:] == ["200", "", "", ""]
    report.sort("result")
    assert report.column("result") == [
        *("200", "220", "240", "300", "310", "470", "490", "510", "530"),
        *("", "", ""),
    ]
    report.sort("result")
    assert report.column("result")[:2] == ["530", "510"]
    assert report.column("result")[-3:] == ["", "", ""]
    report.sort("time")
    assert report.column("time")[:4] == ["30 s", "40 s", "50 s", "1 min 0 s"]
    report.sort("job")
    assert report.column("job") == [str(number) for number in range(12)]
    report.sort("optim@critic.optim")
    assert report.column("optim@critic.optim")[::3] == [
        *("adamw", "lion", "rmsprop", "sgd")
    ]


def test_a_filter_applies_to_the_table_and_to_the_curves(visit) -> None:
    report = visit()
    report.page.select_option("#form", "jobs")
    assert len(report.lines()) == 12
    report.search("rmsprop")
    assert report.column("job") == ["11", "9", "10"]
    assert report.lines() == [
        "job 11 · rmsprop · seed 2",
        "job 9 · rmsprop · seed 0",
        "job 10 · rmsprop · seed 1",
    ]
    report.search("nothing like it")
    assert report.page.locator("#jobs tbody").inner_text() == "none fits the filter"
    assert report.lines() == []


def test_a_status_in_the_header_filters_the_leaderboard(opened: Report) -> None:
    report = opened
    button = report.page.get_by_role("button", name="3 failed")
    button.click()
    assert report.column("job") == ["4", "5", "8"]
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert len(report.column("job")) == 12
    assert button.get_attribute("aria-pressed") == "false"


def test_a_job_and_a_setting_can_be_taken_out_of_the_charts(opened: Report) -> None:
    report = opened
    report.page.select_option("#form", "jobs")
    legend = report.page.locator("#legend")
    job = legend.get_by_title("job 1 · adamw · seed 1")
    job.click()
    assert "job 1 · adamw · seed 1" not in report.lines()
    assert "job 1 · adamw · seed 1" not in report.lines("rate-curves")
    assert len(report.lines()) == 11
    assert job.get_attribute("aria-pressed") == "false"
    legend.get_by_role("button", name="lion").click()
    assert [name for name in report.lines() if "lion" in name] == []
    assert len(report.lines()) == 8
    job.click()
    legend.get_by_role("button", name="lion").click()
    assert len(report.lines()) == 12


def test_the_means_over_seeds_are_of_the_jobs_that_are_shown(visit) -> None:
    report = visit()
    assert report.page.input_value("#form") == "mean"
    expected = ["adamw · mean of 3", "rmsprop · mean of 3", "sgd · one job"]
    assert report.lines() == [*expected, "lion · mean of 2"]
    report.page.locator("#legend").get_by_title("job 1 · adamw · seed 1").click()
    assert report.lines()[0] == "adamw · mean of 2"
    # The filter finds one seed; a mean of what was found would be no mean over seeds.
    report.search("510")
    assert report.lines() == ["adamw · mean of 2"]


def test_a_mean_is_the_mean_and_the_band_one_deviation(visit) -> None:
    results = actor_critic(num_points=3)
    curves = results.curves[results.curves["metric"] == "value_loss"]
    curves = curves[curves["job"].isin(["0", "1", "2"])].reset_index(drop=True)
    curves["value"] = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 3.0, 6.0, 9.0]
    report = visit(dataclasses.replace(results, curves=curves))
    report.settle()
    band, mean = report.page.evaluate(
        'document.getElementById("curves").data'
        ".map(({x, y}) => ({x: [...x], y: [...y]}))"
    )
    assert mean == {"x": [0, 2048, 4096], "y": [2, 4, 6]}
    assert band["x"] == [0, 2048, 4096, 4096, 2048, 0]
    assert band["y"] == [3, 6, 9, 3, 2, 1]


def test_metric_rate_and_scale_are_chosen(opened: Report) -> None:
    report = opened
    page = report.page
    metrics = page.locator("#metric option").all_inner_texts()
    assert metrics == ["episode_return", "value_loss"]
    assert report.axis("yaxis.title.text") == "episode_return"
    page.select_option("#metric", "value_loss")
    assert report.axis("yaxis.title.text") == "value_loss"
    assert report.axis("yaxis.type") == "linear"
    page.check("#log")
    assert report.axis("yaxis.type") == "log"
    # The rate that was swept comes first, and on a log scale.
    assert page.locator("#rate option").all_inner_texts() == [
        *("lr.critic.0", "lr.actor.0")
    ]
    assert report.axis("yaxis.type", "rate-curves") == "log"
    page.select_option("#rate", "lr.actor.0")
    assert report.axis("yaxis.title.text", "rate-curves") == "lr.actor.0"


def test_hovering_names_the_job_its_setting_and_the_value(visit) -> None:
    report = visit(actor_critic(num_points=8))
    report.page.select_option("#form", "jobs")
    report.search("rmsprop")
    report.settle()
    found = report.hover(line=1, point=3)
    assert found.startswith("job 9 · rmsprop · seed 0step 6,144episode_return ")


def test_selected_jobs_come_to_the_front(visit) -> None:
    report = visit()
    report.page.select_option("#form", "jobs")
    report.page.locator("#jobs > tbody > tr").nth(1).locator("td").nth(2).click()
    report.settle()
    widths = report.page.evaluate(
        'document.getElementById("curves").data'
        ".map(({line, opacity}) => [line.width, opacity])"
    )
    assert sorted(widths, reverse=True) == [[3, 1], *[[1.5, 0.3]] * 11]


def test_a_row_opens_to_folder_and_command(opened: Report) -> None:
    report = opened
    report.page.get_by_role("button", name="Details").first.click()
    text = report.page.locator("td.details").inner_text()
    assert "multirun/2026-11-30/21-20-11/3" in text
    assert "python examples/actor_critic.py 'optim@critic.optim=sgd' seed=0" in text
    report.page.get_by_role("button", name="Details").first.click()
    assert report.page.locator("td.details").count() == 0


def test_the_settings_have_mean_spread_and_failures(opened: Report) -> None:
    report = opened
    assert report.column("optim@critic.optim", "groups") == [
        *("adamw", "rmsprop", "sgd", "lion")
    ]
    assert report.column("mean", "groups") == ["490", "220", "530", "305"]
    assert report.column("± std", "groups") == ["20", "20", "", "7.071"]
    assert report.column("results", "groups") == ["3", "3", "1", "2"]
    assert report.column("failed", "groups") == ["", "", "2", "1"]
    dots, *means = report.page.evaluate('document.getElementById("spread").data')
    assert sorted(dots["x"]) == [200, 220, 240, 300, 310, 470, 490, 510, 530]
    assert [trace["x"] for trace in means] == [[490], [220], [530], [305]]
    assert means[0]["error_x"]["array"] == [20]
    assert means[2]["error_x"]["visible"] is False


def test_a_failure_shows_its_whole_message_and_copies_its_command(
    opened: Report,
) -> None:
    report = opened
    report.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    first = report.page.locator("#failed article").first
    title = "FloatingPointError: loss is nan at step 312"
    assert first.locator("h3").inner_text() == title
    assert not first.locator("pre").is_visible()
    first.locator("summary").click()
    assert first.locator("pre").inner_text() == TRACE
    button = first.get_by_role("button").first
    button.click()
    first.get_by_text("Copied").wait_for()
    assert report.page.evaluate("navigator.clipboard.readText()") == (
        "python examples/actor_critic.py 'optim@critic.optim=sgd' seed=1 "
        "hydra.run.dir=multirun/2026-11-30/21-20-11/4"
    )


def test_columns_can_be_shown_and_hidden(opened: Report) -> None:
    report = opened
    assert report.page.locator("#jobs th", has_text="last lr.critic.0").count() == 0
    report.page.get_by_role("button", name="Columns").click()
    report.page.locator(".dt-button-collection").get_by_text("last lr.critic.0").click()
    assert len(report.column("last lr.critic.0")) == 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_fits_its_window(visit, size, scheme: str) -> None:
    results = actor_critic(num_points=20)
    command = "python train.py " + "x" * 500
    long = results.jobs.assign(command=command, error=results.jobs["error"] * 20)
    report = visit(dataclasses.replace(results, jobs=long), size, scheme)
    assert report.overflow() == 0
    report.page.get_by_role("button", name="Details").first.click()
    report.page.locator("#failed summary").first.click()
    report.settle()
    assert report.overflow() == 0
    # A wide table scrolls in its own box.
    box = report.page.locator("#leaderboard .dt-layout-table > .dt-layout-cell")
    wide, visible = box.evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert visible <= size[0]
    assert size == DESKTOP or wide > visible
    assert _brightness(report, "background-color") > 200 or scheme == "dark"
    assert _brightness(report, "color") > 200 or scheme == "light"
    folder = os.environ.get("SWEEP_PAGE_PICTURES")
    if folder:
        name = f"report_{size[0]}_{scheme}.png"
        report.page.screenshot(path=Path(folder) / name, full_page=True)


def _brightness(report: Report, name: str) -> float:
    color = report.page.evaluate(
        f'getComputedStyle(document.body).getPropertyValue("{name}")'
    )
    red, green, blue = map(int, color.removeprefix("rgb(").removesuffix(")").split(","))
    return (red + green + blue) / 3


def test_the_charts_follow_the_colour_scheme(visit) -> None:
    report = visit(scheme="light")
    before = report.axis("font.color")
    report.page.emulate_media(color_scheme="dark")
    assert report.axis("font.color") != before


def test_nothing_in_the_results_becomes_markup(visit) -> None:
    results = actor_critic(num_points=3)
    key = f"{HOSTILE}.key"
    jobs = results.jobs.rename(columns={"optim@critic.optim": key})
    for name in ("error", "folder", "command", "actor.optim", "same_as"):
        jobs[name] = HOSTILE
    jobs[key] = jobs[key] + HOSTILE
    hostile = SweepResults(
        title=HOSTILE,
        direction="maximize",
        jobs=jobs,
        swept=[key, "seed"],
        nodes=results.nodes,
        curves=results.curves.assign(metric=results.curves["metric"] + HOSTILE),
    )
    report = visit(hostile)
    page = report.page
    page.get_by_role("button", name="Details").first.click()
    page.select_option("#form", "jobs")
    report.settle()
    assert page.title() == HOSTILE
    assert page.locator("img").count() == 0
    assert report.column(key)[0] == f"sgd{HOSTILE}"
    assert page.locator("#failed h3").first.inner_text() == HOSTILE
    assert page.locator("#curves .ytitle").text_content() == f"episode_return{HOSTILE}"
    assert HOSTILE in report.hover(line=0, point=1)
    page.get_by_role("button", name="Columns").click()
    names = page.locator(".dt-button-collection button").all_inner_texts()
    assert key in [name.strip() for name in names]
    page.keyboard.press("Escape")
    report.search("lion<img src=x %{x} &amp; </script>")
    assert report.column("job") == ["6", "7", "8"]
    assert page.locator("img").count() == 0


def test_no_button_sends_a_chart_away(visit) -> None:
    report = visit()
    buttons = report.page.locator("#curves .modebar-btn")
    titles = [button.get_attribute("data-title") for button in buttons.all()]
    assert titles == ["Download plot as a PNG", "Zoom", "Pan", "Reset axes"]
    assert report.page.locator("a:not([href^='#'])[href]").count() == 0


@pytest.mark.parametrize("num", [0, 1])
def test_few_jobs_have_a_page_without_complaints(visit, num: int) -> None:
    results = actor_critic(num_points=2)
    curves = results.curves[results.curves["job"].isin([str(i) for i in range(num)])]
    few = dataclasses.replace(results, jobs=results.jobs.iloc[:num], curves=curves)
    report = visit(few)
    text = report.page.locator("body").inner_text()
    assert ("No job has a result yet" in text) == (num == 0)
    content = report.page.evaluate(
        'getComputedStyle(document.getElementById("failures"), "::after").content'
    )
    assert content == '"No job failed."'


def test_ten_thousand_jobs_are_ranked_filtered_and_drawn(visit) -> None:
    report = visit(many_jobs(10_000, num_points=30))
    page = report.page
    assert page.locator("#jobs > tbody > tr").count() == 15
    assert "1 to 15 of 10,000" in page.locator("#leaderboard .dt-info").inner_text()
    page.select_option("#form", "jobs")
    assert len(report.lines()) == 60
    report.search("RuntimeError: 3")
    report.search("AdamW(lr=0.0010")
    found = report.column("critic.optim.lr")
    assert found
    assert {value[:5] for value in found} == {"0.001"}
    page.get_by_role("button", name="250 failed").click()
    assert {*report.column("status")} <= {"failed", "none fits the filter"}
    assert report.overflow() == 0
