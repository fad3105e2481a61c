"""Make the picture of a sweep's report in the README; takes some minutes.

python examples/make_report_picture.py [FOLDER of a sweep that is there already]

Needs Chromium, which apt-get install chromium brings, and pip install playwright.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SWEPT = ["optim@critic.optim=adamw,sgd,lion,rmsprop", "seed=0,1,2"]
QUICK = ["total_env_steps=40960", "progress=false"]
WIDTH, HEIGHT, COLORS = 1280, 2215, 128


def run_sweep(folder: Path) -> None:
    """Sweep over the critic's optimizer, for a third of the usual steps."""
    chosen = ["-m", "+sweep=joblib", *SWEPT, *QUICK, f"hydra.sweep.dir={folder}"]
    command = [sys.executable, HERE / "actor_critic.py", *chosen]
    subprocess.run(command, check=True)  # noqa: S603 - our own program


def photograph(page_file: Path, picture: Path, width: int, height: int) -> None:
    """Open a report in a browser without a window, and save its upper part."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(page_file.absolute().as_uri())
        page.wait_for_selector("body[data-ready]")
        page.wait_for_timeout(1_000)  # the charts move into place
        page.screenshot(path=picture)
        browser.close()
    with Image.open(picture) as image:
        image.convert("RGB").quantize(COLORS).save(picture, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        given = sys.argv[1:]
        folder = Path(given[0] if given else made)
        if not given:
            run_sweep(folder)
        picture = HERE / "figures" / "report.png"
        photograph(folder / "report.html", picture, WIDTH, HEIGHT)
