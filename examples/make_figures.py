"""Make the figures of the README; takes about eight minutes.

python examples/make_figures.py
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from plotting import draw_losses

from optim_hydra import OptimConfig
from optim_hydra.errors import Problems
from optim_hydra.schedule_plan import plan_schedule

HERE = Path(__file__).parent
CRITICS = {
    "AdamW": "optim@critic.optim=adamw",
    "Lion": "optim@critic.optim=lion",
    "SGD": "optim@critic.optim=sgd",
}
SCHEDULES = {
    "constant": {},
    "linear": {"min_lr_ratio": 0.1},
    "cosine": {"min_lr_ratio": 0.1},
    "cosine_with_restarts": {"num_cycles": 3},
    "polynomial": {"lr_decay_power": 3.0},
    "inverse_sqrt": {},
    "wsd": {"lr_decay_steps_ratio": 0.3},
}
SEEDS = (0, 1, 2)


def draw_schedules() -> Figure:
    """Draw the factor of each schedule over 100 steps and a little further."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, fields in SCHEDULES.items():
        config = OptimConfig(lr_scheduler_type=name, lr_warmup_steps=10, **fields)
        schedule = plan_schedule(config, 100, Problems("optim"))
        label = ", ".join([name, *(f"{key} {value}" for key, value in fields.items())])
        axes.plot([schedule.factor(step) for step in range(111)], label=label)
    axes.axvline(100, color="gray", linewidth=0.8, linestyle=":")
    axes.set(xlabel="step (10 of warmup, 100 in all)", ylabel="factor of lr")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(alpha=0.3)
    return figure


def run_example(program: str, seed: int, folder: Path, *overrides: str) -> None:
    """Run a program of this folder once; its output goes to another."""
    settings = [f"seed={seed}", "progress=false", f"hydra.run.dir={folder}"]
    command = [sys.executable, HERE / program, *overrides, *settings]
    subprocess.run(command, check=True)  # noqa: S603 - our own program


def returns_of(override: str, seed: int, folder: Path) -> list[tuple[float, float]]:
    """Train once and return the mean return over the environment steps."""
    run_example("actor_critic.py", seed, folder, override)
    with (folder / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [(float(row["step"]), float(row["mean_return"])) for row in rows]


def draw_critics() -> Figure:
    """Draw mean and range over the seeds for each optimizer of the critic."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, override in CRITICS.items():
        with tempfile.TemporaryDirectory() as folder:
            runs = [returns_of(override, s, Path(folder) / str(s)) for s in SEEDS]
        curves = np.array(runs)
        steps, returns = curves[0, :, 0], curves[:, :, 1]
        axes.plot(steps, returns.mean(0), label=name)
        axes.fill_between(steps, returns.min(0), returns.max(0), alpha=0.2)
    axes.set(xlabel="environment steps", ylabel="mean return")
    axes.legend(title="critic")
    axes.grid(alpha=0.3)
    return figure


def draw_muon() -> Figure:
    """Draw the losses of the two optimizers of muon_transformer.py over the seeds."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(seed) for seed in SEEDS]
        for seed, folder in zip(SEEDS, folders, strict=True):
            run_example("muon_transformer.py", seed, folder)
        nodes = {"AdamW": "adamw", "AdamW + Muon": "muon"}
        return draw_losses(
            [
                (label, [folder / node / "metrics.csv" for folder in folders])
                for label, node in nodes.items()
            ]
        )


if __name__ == "__main__":
    figures = HERE / "figures"
    figures.mkdir(exist_ok=True)
    draw_schedules().savefig(figures / "schedules.png", dpi=120)
    draw_critics().savefig(figures / "critics.png", dpi=120)
    draw_muon().savefig(figures / "muon.png", dpi=120)
