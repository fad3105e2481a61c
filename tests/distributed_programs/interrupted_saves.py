"""Save and be killed, and save while training goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from kept_runs import CONFIG, FOLDER, Run, all_of, started
from optim_hydra import build_optimizers
from two_processes import Results, run, sharded

sys.path.append(str(Path(__file__).parents[2] / "examples"))
from checkpoints import latest, save

RANK = int(os.environ["RANK"])
KEPT = FOLDER / "kept"


class Fatal:
    """Who pickles it is killed."""

    def __reduce__(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


def be_killed_while_saving() -> None:
    store = dist.FileStore(str(FOLDER / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=2)
    kept = started(CONFIG, sharded)
    kept.train(range(2))
    save(kept.state(), KEPT, 2)
    kept.train(range(2, 4))
    save({**kept.state(), f"fatal {RANK}": Fatal()}, KEPT, 4)


def killed_while_saving() -> Results:
    """Load the checkpoint before, and save once more where the writers died."""
    left = sorted(path.name for path in KEPT.iterdir())
    written = sorted(path.name for path in (KEPT / "step_4.partial").iterdir())
    undisturbed = started(CONFIG, sharded)
    undisturbed.train(range(2))
    kept = started(CONFIG, sharded, fill=0.5)
    path = latest(KEPT)
    kept.load(str(path))
    is_same = all_of(kept) == all_of(undisturbed)
    for each in (kept, undisturbed):
        each.train(range(2, 4))
    save(kept.state(), KEPT, 4)
    again = started(CONFIG, sharded, fill=0.5)
    again.load(str(latest(KEPT)))
    return {
        "exit_code": WRITER.exitcode,
        "left": left,
        "written": written,
        "latest": path.name,
        "is_same": is_same,
        "saved_again": all_of(again) == all_of(undisturbed) == all_of(kept),
        "left_at_the_end": sorted(path.name for path in KEPT.iterdir()),
    }


def container_run(kept: Run) -> Run:
    container = build_optimizers({"actor": kept.network}, {"actor": CONFIG})
    return Run(kept.network, container)


def saved_while_training_goes_on() -> Results:
    """Load what `async_save` wrote of an optimizer, and of a container as it is."""
    group = dist.new_group(backend="gloo")
    results: Results = {}
    for kind in ("optimizer", "container"):
        kept = started(CONFIG, sharded)
        if kind == "container":
            kept = container_run(kept)
        kept.train(range(2))
        at_the_call = all_of(kept)
        state = kept.state()
        if kind == "container":
            state["optimizer"] = kept.optimizer
        path = FOLDER / f"async {kind}"
        written = dcp.async_save(state, checkpoint_id=path, process_group=group)
        kept.train(range(2, 5))
        went_on = all_of(kept)
        written.result(60)
        if kind == "container":
            dcp.load(state, checkpoint_id=path)
        else:
            kept.load(path.name)
        results[kind] = {
            "loaded": all_of(kept) == at_the_call,
            "went_on": went_on != at_the_call,
        }
    return results


# Before this process has threads and a group of its own.
FOLDER.mkdir(exist_ok=True)
WRITER = multiprocessing.get_context("fork").Process(target=be_killed_while_saving)
WRITER.start()
WRITER.join(60)

run(killed_while_saving, saved_while_training_goes_on)
