"""A browser that opens reports, and what is read from an open one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from optim_hydra.sweep.page import write_page
from optim_hydra.sweep.results import SweepResults
from sweep_samples import actor_critic

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NEEDS_BROWSER = pytest.mark.skipif(
    CHROMIUM is None,
    reason="needs a browser: apt-get install --no-install-recommends chromium",
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = (1280, 900), (390, 844)


@contextmanager
def running_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=ARGUMENTS,
            ignore_default_args=["--hide-scrollbars"],
            timeout=120_000,
        )
        yield browser
        browser.close()


class Report:
    """An open page, with what it complained of and what it asked for."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        context.set_offline(True)
        context.set_default_timeout(60_000)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("body[data-ready]")

    def check(self) -> None:
        """Hold it to have complained of nothing, and to have used no network."""
        assert self.complaints == []
        first, *others = self.requests
        assert first.endswith("/report.html")
        assert {url.split(":")[0] for url in others} <= {"blob", "data"}

    def column(self, title: str, table: str = "jobs") -> list[str]:
        """Return the texts of a column, row by row."""
        titles = self.page.locator(f"#{table} thead th").all_inner_texts()
        place = [text.strip() for text in titles].index(title) + 1
        cells = f"#{table} > tbody > tr > td:nth-child({place})"
        return [text.strip() for text in self.page.locator(cells).all_inner_texts()]

    def sort(self, title: str) -> None:
        self.page.locator("#jobs thead th").get_by_text(title, exact=True).click()
        self.settle()

    def search(self, text: str) -> None:
        self.page.get_by_placeholder("Filter jobs").fill(text)

    def settle(self) -> None:
        """Wait for the drawing that the next frame does."""
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame("
            "() => requestAnimationFrame(done)))"
        )

    def lines(self, chart: str = "curves") -> list[str]:
        """Return the names that hovering over the lines of a chart shows."""
        self.settle()
        shown = self.page.evaluate(f"""
            document.getElementById("{chart}").data
                .filter(trace => trace.hovertemplate)
                .map(trace => trace.hovertemplate.split("<br>")[0])
        """)
        return [text.removeprefix("<b>").removesuffix("</b>") for text in shown]

    def axis(self, name: str, chart: str = "curves") -> str:
        self.settle()
        layout = f'document.getElementById("{chart}").layout'
        return self.page.evaluate(f"{layout}.{name}")

    def hover(self, line: int, point: int) -> str:
        """Move the mouse to a point of a learning curve; return what is shown there."""
        chart = self.page.locator("#curves")
        chart.scroll_into_view_if_needed()
        x, y = chart.evaluate(
            """(chart, [line, point]) => {
                const {xaxis, yaxis} = chart._fullLayout, {x, y} = chart.data[line];
                return [xaxis._offset + xaxis.d2p(x[point]),
                        yaxis._offset + yaxis.d2p(y[point])];
            }""",
            [line, point],
        )
        box = chart.bounding_box()
        self.page.mouse.move(box["x"] + x, box["y"] + y, steps=4)
        label = chart.locator(".hovertext")
        label.wait_for()
        return label.text_content()

    def overflow(self) -> int:
        return self.page.evaluate(
            "document.documentElement.scrollWidth"
            " - document.documentElement.clientWidth"
        )


@contextmanager
def visits(browser: Browser, folder: Path) -> Iterator[Callable[..., Report]]:
    """Write reports and open them; at the end they must not have complained."""
    contexts, reports = [], []

    def run(
        results: SweepResults | None = None, size=DESKTOP, scheme="light"
    ) -> Report:
        path = folder / "report.html"
        write_page(results or actor_critic(), path)
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        contexts.append(context)
        reports.append(Report(context, path))
        return reports[-1]

    yield run
    for report in reports:
        report.check()
    for context in contexts:
        context.close()
