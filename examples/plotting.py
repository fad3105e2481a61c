"""Draw the curves of a run, from the metrics that it wrote."""

import csv
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def plot_metrics(
    metrics: Path, title: str, x: str, upper: Sequence[str], lower: Sequence[str]
) -> None:
    """Draw columns of `metrics.csv` as two panels into `learning_curve.png`.

    Empty cells are left out, so a column may have a value in some rows only.
    """
    with metrics.open(newline="") as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(8, 6), layout="constrained")
    top, bottom = figure.subplots(2, sharex=True, height_ratios=(2, 1))
    top.set_title(title)
    for axes, columns in ((top, upper), (bottom, lower)):
        for column, style in zip(columns, ("-", "--", ":"), strict=False):
            _plot_column(axes, rows, x, column, style)
        axes.grid(alpha=0.3)
        axes.legend()
    bottom.set_xlabel(x.replace("_", " "))
    bottom.set_ylabel("learning rate")
    figure.savefig(metrics.with_name("learning_curve.png"), dpi=150)


def _plot_column(
    axes: Axes, rows: list[dict[str, str]], x: str, column: str, style: str
) -> None:
    points = [(float(r[x]), float(r[column])) for r in rows if r[column]]
    label = column.replace("_", " ")
    axes.plot(*zip(*points, strict=True), style, linewidth=1.2, label=label)
