"""The example that trains with Muon, shortened, and what its Muon is given."""

from __future__ import annotations

import csv
import importlib
import math
import re
from pathlib import Path

import hydra
import matplotlib.image
import pytest

import optim_hydra
from optim_hydra import assignment_report, build_optimizer

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "examples/muon_transformer.py"
SHORT = (
    "num_steps=40",
    "eval_interval=20",
    "model.num_layers=2",
    "model.width=32",
    "data.num_bytes=200000",
    "data.sequence_length=16",
    "progress=false",
    "hydra.run.dir=out",
)
HIDDEN = ("qkv", "attention_out", "mlp.1", "mlp.3")
UNTRAINED = math.log(256)


def test_the_example_trains_with_both_and_draws_their_losses(
    tmp_path: Path, run_python
) -> None:
    # Wide enough for one line of the table to hold one group.
    result = run_python(str(PROGRAM), *SHORT, COLUMNS="250")
    assert result.returncode == 0, result.stderr
    found = re.findall(r"(?m)^(.+): validation loss (.+) after", result.stdout)
    assert [name for name, _ in found] == ["AdamW", "AdamW + Muon"]
    assert all(float(loss) < UNTRAINED - 1.0 for _, loss in found)

    (line,) = re.findall(r"(?m)^ *\d+ +Muon .*$", result.stdout)
    assert line.split()[:7] == ["2", "Muon", "8", "24576", "0.008", "0.1", "[0]"]

    for node, peak in (("adamw", 4e-3), ("muon", 8e-3)):
        with (tmp_path / "out" / node / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 40
        assert max(float(row["lr.optim"]) for row in rows) == pytest.approx(peak)
        assert [row["step"] for row in rows if row["val_loss"]] == ["20", "40"]

    image = matplotlib.image.imread(tmp_path / "out/losses.png")
    assert image.shape[:2] == (540, 1200)
    assert image[..., :3].std() > 0.05


def test_the_example_stops_where_muon_gets_fewer_matrices_than_expected(
    run_python,
) -> None:
    result = run_python(
        str(PROGRAM), *SHORT, "muon.optim.param_groups.0.expect=9",
    )  # fmt: skip
    assert result.returncode == 1
    assert (
        "role 'hidden' with ndim 2 matches 8 parameters (expect: 9)"
        " @ muon.optim.param_groups[0]\n"
    ) in result.stderr


# At width 64 the first matrix of an MLP has the shape of the embedding of 256 bytes.
@pytest.mark.parametrize("width", [96, 64])
def test_muon_holds_exactly_the_hidden_matrices(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    language_model = importlib.import_module("language_model")
    with hydra.initialize_config_dir(str(ROOT / "conf"), version_base=None):
        cfg = optim_hydra.compose("muon_transformer", [f"model.width={width}"])
    model = language_model.LanguageModel(**cfg.model, sequence_length=64)
    rows = assignment_report(build_optimizer(model, cfg.muon.optim)).rows
    (names,) = [row["names"] for row in rows if row["class"] == "Muon"]
    assert names == [f"blocks.{i}.{name}.weight" for i in range(4) for name in HIDDEN]
    others = {name for row in rows if row["class"] == "AdamW" for name in row["names"]}
    assert others == {name for name, _ in model.named_parameters()} - set(names)
