"""Sweeps to report: an actor and a critic, four optimizers, three seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from optim_hydra.sweep.results import SweepResults

CRITICS = {
    "adamw": "AdamW(lr=0.001, weight_decay=0.01 decoupled)",
    "sgd": "SGD(lr=0.01, momentum=0.9)",
    "lion": "Lion(lr=0.0001, weight_decay=0.1 decoupled)",
    "rmsprop": "RMSprop(lr=0.001, alpha=0.99)",
}
RATES = {"adamw": 1e-3, "sgd": 1e-2, "lion": 1e-4, "rmsprop": 1e-3}
# The result of each job by its number; the highest one of all is a seed of sgd.
RETURNS = [
    *(470.0, 490.0, 510.0),  # adamw
    *(530.0, np.nan, np.nan),  # sgd
    *(310.0, 300.0, np.nan),  # lion
    *(220.0, 200.0, 240.0),  # rmsprop
]
TRACE = """\
Traceback (most recent call last):
  File "examples/actor_critic.py", line 142, in main
    loss = train(cfg, actor, critic)
FloatingPointError: loss is nan at step 312"""
UNREAL = "ValueError: the job returned nan"


def actor_critic(num_points: int = 250) -> SweepResults:
    """Two seeds of sgd fail with one message, one of lion with another."""
    rng = np.random.default_rng(0)
    jobs, curves = [], []
    part = np.linspace(0, 1, num_points)
    for number, result in enumerate(RETURNS):
        name, seed = list(CRITICS)[number // 3], number % 3
        failed = bool(np.isnan(result))
        end = num_points // 3 if failed else num_points
        top = 500.0 if failed else result
        logged = {
            "episode_return": top * (1 - np.exp(-5 * part))
            + rng.normal(0, 9, len(part)),
            "value_loss": 2 * np.exp(-3 * part) + rng.gamma(2, 0.03, len(part)),
            "lr.actor.0": 3e-4 * (1 - part),
            "lr.critic.0": RATES[name] * (0.5 + 0.5 * np.cos(np.pi * part)),
        }
        curves += [
            pd.DataFrame(
                {
                    "job": str(number),
                    "metric": metric,
                    "step": np.arange(end) * 2048,
                    "value": values[:end],
                }
            )
            for metric, values in logged.items()
        ]
        folder = f"multirun/2026-11-30/21-20-11/{number}"
        jobs.append(
            {
                "job": str(number),
                "status": "failed" if failed else "completed",
                "result": result,
                "seconds": 30.0 + 10 * number,
                "error": (TRACE if name == "sgd" else UNREAL) if failed else "",
                "folder": folder,
                "command": f"python examples/actor_critic.py "
                f"'optim@critic.optim={name}' seed={seed} hydra.run.dir={folder}",
                "same_as": "",
                "optim@critic.optim": name,
                "seed": seed,
                "actor.optim": "AdamW(lr=0.0003, weight_decay=0)",
                "critic.optim": CRITICS[name],
                **{
                    f"last.{metric}": values[end - 1]
                    for metric, values in logged.items()
                },
            }
        )
    return SweepResults(
        title="actor_critic 2026-11-30 21:20",
        direction="maximize",
        jobs=pd.DataFrame(jobs),
        swept=["optim@critic.optim", "seed"],
        nodes=["actor.optim", "critic.optim"],
        curves=pd.concat(curves, ignore_index=True),
    )


def many_jobs(num: int, num_points: int) -> SweepResults:
    """A sweep of rates drawn at random, four seeds each, each 40th job failed."""
    rng = np.random.default_rng(1)
    number = np.arange(num)
    rate = np.repeat(10 ** rng.uniform(-5, -1, num // 4), 4)
    failed = number % 40 == 0
    result = np.abs(np.log10(rate) + 3) + rng.normal(0, 0.1, num)
    jobs = pd.DataFrame(
        {
            "job": number.astype(str),
            "status": np.where(failed, "failed", "completed"),
            "result": np.where(failed, np.nan, result),
            "seconds": rng.uniform(20, 4000, num),
            "error": [
                f"RuntimeError: {i % 7}" if f else "" for i, f in enumerate(failed)
            ],
            "folder": [f"multirun/{i}" for i in number],
            "command": [f"python train.py critic.optim.lr={value!r}" for value in rate],
            "same_as": "",
            "critic.optim.lr": rate,
            "seed": number % 4,
            "critic.optim": [f"AdamW(lr={value:.4g})" for value in rate],
        }
    )
    fall = np.exp(-4 * np.linspace(0, 1, num_points))
    curves = [
        pd.DataFrame(
            {
                "job": np.repeat(jobs["job"].to_numpy(), num_points),
                "metric": metric,
                "step": np.tile(np.arange(num_points) * 100, num),
                "value": (np.repeat(result, num_points) * (1 + np.tile(fall, num))),
            }
        )
        for metric in ("train_loss", "eval_loss")
    ]
    return SweepResults(
        title=f"{num:,} rates",
        direction="minimize",
        jobs=jobs,
        swept=["critic.optim.lr", "seed"],
        nodes=["critic.optim"],
        curves=pd.concat(curves, ignore_index=True),
    )
