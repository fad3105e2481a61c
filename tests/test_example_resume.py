"""The example is killed on two processes and goes on with other settings on one."""

from __future__ import annotations

from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "examples" / "resume.py"
SHORT = ["num_steps=12", "save_interval=4", "model.num_layers=1", "model.width=16"]
LAUNCH = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def test_a_killed_run_goes_on_elsewhere_with_other_settings(
    tmp_path: Path, run_fresh, run_python
) -> None:
    network = {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1"}
    killed = run_fresh(*LAUNCH, str(PROGRAM), *SHORT, "kill_at=10", **network)
    assert killed.returncode != 0
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step_8"]

    # What a writer leaves that is killed in the middle.
    (tmp_path / "checkpoints/step_12.partial").mkdir()
    settings = ["optim.lr=5e-4", "optim.no_decay=[bias,norm]"]
    result = run_python(str(PROGRAM), *SHORT, *settings)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "going on from checkpoints/step_8" in lines
    assert any(line.endswith("restored the state of 15 parameters") for line in lines)
    rate, *_ = [line for line in lines if line.startswith("  lr: ")]
    assert rate.startswith("  lr: saved 0.001, now 0.0005 (token_embedding.weight,")
    decay, *_ = [line for line in lines if line.startswith("  weight_decay: ")]
    assert decay.startswith("  weight_decay: saved 0.01, now 0.0 (blocks.0.attention")
    assert lines[-1].startswith("loss ")
    assert lines[-1].endswith(" at step 12")

    again = run_python(str(PROGRAM), *SHORT)
    assert again.stdout.splitlines() == [
        "done before: remove checkpoints to begin anew"
    ]
