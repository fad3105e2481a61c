"""The trainers under examples/ as a user runs them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


TORCHAO = (
    "critic.optim.optimizer_impl=torchao.optim",
    "critic.optim.optimizer=_AdamW",
)


@pytest.mark.parametrize(
    ("critic", "num_updates", "expected"),
    [((), 30, 450), (("optim@critic.optim=lion",), 10, 200), (TORCHAO, 10, 200)],
    ids=["adamw", "lion", "torchao"],
)
def test_actor_critic_learns_cartpole(
    critic: tuple[str, ...],
    num_updates: int,
    expected: float,
    tmp_path: Path,
    run_python,
    run_fresh,
) -> None:
    arguments = (
        str(EXAMPLES / "actor_critic.py"),
        *critic,
        f"total_env_steps={16 * 128 * num_updates}",
        "progress=false",
        "hydra.run.dir=out",
    )
    # torchao is compiled here as it is for a user.
    compiled = {"TORCHDYNAMO_DISABLE": "0"}
    is_torchao = critic == TORCHAO
    result = run_fresh(*arguments, **compiled) if is_torchao else run_python(*arguments)
    assert result.returncode == 0, result.stderr
    text = result.stdout.rpartition("mean return ")[2]
    # Who has learnt nothing balances the pole for 10 steps.
    assert float(text.partition(",")[0]) >= expected
    rows = rows_of(tmp_path / "out/metrics.csv")
    assert len(rows) == num_updates
    peak = max(float(row["lr.critic"]) for row in rows)
    # What is written is the rate at the end of an update.
    passed = 1 / num_updates
    assert peak == pytest.approx(1e-4 if "lion" in str(critic) else 1e-3, rel=passed)
    assert float(rows[-1]["lr.actor"]) == 0.0
    assert (tmp_path / "out/learning_curve.png").stat().st_size > 10_000


def test_actor_critic_stops_when_it_diverges_and_names_the_node(
    tmp_path: Path, run_python
) -> None:
    result = run_python(
        str(EXAMPLES / "actor_critic.py"),
        "optim@critic.optim=sgd",
        "critic.optim.lr=1e30",
        "progress=false",
    )
    assert result.returncode == 1
    assert "check the optimizer node `critic.optim`" in result.stderr


def test_sft_learns_and_takes_the_legacy_command_line(
    tmp_path: Path, run_python
) -> None:
    result = run_python(
        str(EXAMPLES / "sft.py"),
        "optim.warmup_steps_ratio=0.1",
        "optim.lr_scheduler=cosine",
        "num_steps=100",
        "eval_interval=50",
        "hydra.run.dir=out",
    )
    assert result.returncode == 0, result.stderr
    assert "optim.warmup_steps_ratio is now lr_warmup_steps_ratio" in result.stderr
    assert "optim.lr_scheduler is now lr_scheduler_type" in result.stderr
    rows = rows_of(tmp_path / "out/metrics.csv")
    rates = [float(row["lr.optim"]) for row in rows]
    assert rates[0] == 0.0
    assert rates[10] == pytest.approx(1e-3)
    assert rates[-1] == pytest.approx(1e-4, rel=0.05)
    losses = [float(row["val_loss"]) for row in rows if row["val_loss"]]
    assert len(losses) == 2
    assert losses[1] < losses[0] < 5.0
    assert (tmp_path / "out/sample.txt").read_bytes().startswith(b"def ")


def test_without_hydra_fits_its_line(run_fresh) -> None:
    result = run_fresh(str(EXAMPLES / "without_hydra.py"))
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split()[1].rstrip(",")) < 1e-2


@pytest.mark.parametrize(
    "program", ["actor_critic.py", "sft.py", "muon_transformer.py"]
)
@pytest.mark.parametrize("flag", ["--help", "--cfg=job"])
def test_printing_needs_no_torch(program: str, flag: str, run_fresh) -> None:
    result = run_fresh(
        "-X", "importtime", str(EXAMPLES / program), *flag.split("="),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "optim_hydra" in imported
    assert not imported & {"torch", "matplotlib", "gymnasium", "numpy"}
    assert "optim:" in result.stdout
