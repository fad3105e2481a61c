"""Own `optim-hydra plot`: the learning rates of a config over its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from optim_hydra.cli.check import Checked, check_config
from optim_hydra.cli.check_output import rate_text
from optim_hydra.cli.rates import Curve, merged
from optim_hydra.errors import Problems, WrongObjectError

__all__ = ["Drawn", "drawn_of", "plot_config"]

# A constant rate without a total is drawn over so many steps after its warmup.
_LEAST = 100
_POINTS = 1000
_HEIGHT = 10


@dataclass(frozen=True)
class Drawn:
    """One curve, and the groups of a node that follow it."""

    node: str
    curve: Curve
    last: int
    """The last update that is drawn."""

    @property
    def label(self) -> str:
        """What it is called."""
        return f"{self.node or 'optim'}, {self.curve.label}"

    def steps(self, points: int) -> list[int]:
        """Return so many updates, first and last among them; all of a short run."""
        number = min(points, self.last + 1)
        if number == 1:
            return [0]
        return [round(i * self.last / (number - 1)) for i in range(number)]


def plot_config(  # noqa: PLR0913 - what can be said on the command line
    config: Path,
    overrides: Sequence[str],
    console: Console,
    *,
    output: Path | None = None,
    models: Sequence[str] = (),
    steps: int | None = None,
    as_json: bool = False,
) -> None:
    """Draw the rates: in the terminal, into a PNG, or as JSON.

    Raises:
        ConfigError: Nodes have problems.
        WrongObjectError: There is nothing to draw.

    """
    checked = check_config(config, overrides, models=models, steps=steps)
    Problems("", checked.problems).raise_if_any()
    drawn = drawn_of(checked)
    if as_json:
        data = [
            {
                "node": each.node,
                "groups": each.curve.label,
                "schedule": each.curve.schedule.described(),
                "steps": each.steps(_POINTS),
                "lr": [each.curve.at(step) for step in each.steps(_POINTS)],
            }
            for each in drawn
        ]
        console.out(json.dumps(data, indent=2), highlight=False)
    elif output is not None:
        _draw(drawn, output)
        console.print(Text(f"rates: {output}"), soft_wrap=True)
    else:
        for each in drawn:
            _print(each, console)
    if not as_json:
        for node in checked.nodes:
            for note in node.notes:
                text = f"{node.key} is not drawn: {note}"
                console.print(Text(text), soft_wrap=True)


def drawn_of(checked: Checked) -> list[Drawn]:
    """Return what can be drawn of a checked config.

    Raises:
        WrongObjectError: That is nothing.

    """
    drawn = []
    for node in checked.nodes:
        for curve in merged(node.curves):
            schedule = curve.schedule
            last = max(schedule.total, schedule.warmup + _LEAST * (schedule.total < 1))
            drawn.append(Drawn(node.key, curve, last))
    if not drawn:
        notes = [f"{node.key}: {note}" for node in checked.nodes for note in node.notes]
        why = "; ".join(notes) or "no node of this library has a schedule"
        msg = f"nothing to draw: {why}"
        raise WrongObjectError(msg)
    return drawn


def _print(drawn: Drawn, console: Console) -> None:
    """Draw a curve in the terminal, as wide as that is."""
    import plotext  # noqa: PLC0415 - for a terminal only

    curve = drawn.curve
    steps = drawn.steps(console.width)
    top = max(map(curve.at, [*steps, *curve.marks().values()])) or 1.0
    rates = [top * share for share in (0, 0.5, 1)]
    marks = sorted({drawn.last * number // 4 for number in range(5)})
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)  # noqa: FBT003 - width and height
    plotext.plotsize(console.width, _HEIGHT)
    plotext.ylim(0, top)
    plotext.yticks(rates, list(map(rate_text, rates)))
    plotext.xticks(marks)
    plotext.xlabel("optimizer step")
    plotext.plot(steps, list(map(curve.at, steps)), marker="braille")
    text = f"{drawn.label}: {curve.schedule.name}"
    console.print(Text(text, style="bold"), soft_wrap=True)
    lines = plotext.uncolorize(plotext.build()).splitlines()
    console.print(Text("\n".join(map(str.rstrip, lines))), soft_wrap=True)


def _draw(drawn: Sequence[Drawn], output: Path) -> None:
    """Write a PNG; curves of one node have one colour and different dashes."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - for a picture only

    nodes = list(dict.fromkeys(each.node for each in drawn))
    dashes = ["-", "--", "-.", ":"]
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    kinds = figure.canvas.get_supported_filetypes()
    if output.suffix[1:] not in kinds:
        msg = f"{output} is no picture: end it in .png, or one of {', '.join(kinds)}"
        raise WrongObjectError(msg)
    axes = figure.subplots()
    for node in nodes:
        own = [each for each in drawn if each.node == node]
        for number, each in enumerate(own):
            steps = each.steps(_POINTS)
            axes.plot(
                steps,
                [each.curve.at(step) for step in steps],
                color=f"C{nodes.index(node) % 10}",
                linestyle=dashes[number % len(dashes)],
                label=f"{each.label}: {each.curve.schedule.name}",
            )
    axes.set_xlabel("optimizer step")
    axes.set_ylabel("learning rate")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", frameon=False, fontsize="small")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
