"""Draw the curves of runs, from the metrics that they wrote."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

Array = NDArray[np.float64]


def plot_metrics(folder: Path, title: str, steps: str, upper: Sequence[str]) -> None:
    """Draw columns of `metrics.csv` and the learning rates into `learning_curve.png`.

    Empty cells are left out, so a column may have a value in some rows only.
    """
    rows = _rows(folder / "metrics.csv")
    lower = [name for name in rows[0] if name.startswith("lr.")]
    figure = Figure(figsize=(8, 6), layout="constrained")
    top, bottom = figure.subplots(2, sharex=True, height_ratios=(2, 1))
    top.set_title(title)
    for axes, columns in ((top, upper), (bottom, lower)):
        for column, style in zip(columns, ("-", "--", ":"), strict=False):
            _plot_column(axes, rows, column, style)
        axes.grid(alpha=0.3)
        axes.legend()
    bottom.set_xlabel(steps)
    bottom.set_ylabel("learning rate")
    figure.savefig(folder / "learning_curve.png", dpi=150)


def draw_losses(runs: Sequence[tuple[str, Sequence[Path]]], window: int = 20) -> Figure:
    """Draw training and validation losses beside each other, one line for each name.

    Args:
        runs: Pairs of a name and the `metrics.csv` of each seed; the line is their
            mean, the band their range.
        window: Steps over which the training loss, noisy as it is, is averaged.

    """
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    columns = {"train_loss": window, "val_loss": 1}
    for axes, (column, width) in zip(panels, columns.items(), strict=True):
        for name, paths in runs:
            steps, losses = _read_runs(paths, column, width)
            label = f"{name}, {losses[:, -1].mean():.3f} at the end"
            axes.plot(steps, losses.mean(0), label=label)
            axes.fill_between(steps, losses.min(0), losses.max(0), alpha=0.2)
        axes.set(title=column.replace("_", " "), xlabel="step")
        axes.grid(alpha=0.3)
        axes.legend()
    panels[0].set_ylabel("nats per byte")
    return figure


def _plot_column(
    axes: Axes, rows: list[dict[str, str]], column: str, style: str
) -> None:
    label = column.removeprefix("lr.").replace("_", " ")
    points = zip(*_points(rows, column), strict=True)
    axes.plot(*points, style, linewidth=1.2, label=label)


def _read_runs(paths: Sequence[Path], column: str, width: int) -> tuple[Array, Array]:
    """Return steps, and the values of each run, both as means of `width` rows."""
    runs = np.array([_points(_rows(path), column) for path in paths])
    width = min(width, runs.shape[1])
    whole = runs[:, runs.shape[1] % width :]
    means = whole.reshape(len(paths), -1, width, 2).mean(2)
    return means[0, :, 0], means[:, :, 1]


def _rows(metrics: Path) -> list[dict[str, str]]:
    with metrics.open(newline="") as file:
        return list(csv.DictReader(file))


def _points(rows: list[dict[str, str]], column: str) -> list[tuple[float, float]]:
    return [(float(row["step"]), float(row[column])) for row in rows if row[column]]
