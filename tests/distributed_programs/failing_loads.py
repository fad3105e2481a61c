"""Load what is damaged or of another run, and see that nothing has changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException

from kept_runs import CONFIG, FOLDER, Run, settings_of, started
from optim_hydra import (
    build_optimizers,
    load_optimizer_state_dict,
    optimizer_state_dict,
)
from optim_hydra.saved_state import StateError
from saved_training import bits, bits_of
from two_processes import Results, run, sharded

RANK = int(os.environ["RANK"])
SGD = {**CONFIG, "optimizer": "SGD", "override_optimizer_config": {"momentum": 0.9}}
Change = Callable[[nn.Module], object]


def damaged(name: str, change: Callable[[Path], object]) -> Path:
    """Return a copy of the good checkpoint that something was done to."""
    path = FOLDER / name
    if RANK == 0 and not path.exists():
        shutil.copytree(FOLDER / "good", path)
        change(path)
    dist.barrier()
    return path


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def built(config: dict[str, Any], change: Change, *, is_trained: bool) -> Run:
    def changed(network: nn.Module) -> nn.Module:
        change(network)
        return sharded(network)

    kept = started(config, changed, fill=0.5)
    if is_trained:
        for parameter in kept.network.parameters():
            parameter.grad = torch.ones_like(parameter)
        kept.optimizer.step()
    return kept


def told(attempt: Callable[[], object]) -> str:
    """Return what a load ends in: what each process has told the others, or itself."""
    try:
        attempt()
    except CheckpointException as error:
        causes = {r: repr(wrapped[0]) for r, wrapped in error.failures.items()}
        text = "\n".join(f"{rank}: {cause}" for rank, cause in sorted(causes.items()))
        return text.replace(str(FOLDER), "")
    except StateError as error:
        return str(error)
    return "loaded"


def refused(
    path: Path,
    config: dict[str, Any] = CONFIG,
    change: Change = lambda _: None,
    *,
    partial: bool = False,
    **given: Any,
) -> Results:
    """Load into an optimizer that has stepped and into one that has not."""
    results: Results = {}
    for kind, is_trained in (("trained", True), ("untrained", False)):
        kept = built(config, change, is_trained=is_trained)
        before = bits_of(kept.optimizer)

        def attempt(optimizer: Any = kept.optimizer) -> None:
            state = {"optimizer": optimizer_state_dict(optimizer, templates=True)}
            planner = dcp.DefaultLoadPlanner(allow_partial_load=partial)
            dcp.load(state, checkpoint_id=path, planner=planner)
            load_optimizer_state_dict(optimizer, state["optimizer"], **given)

        results[kind] = {
            "told": told(attempt),
            "unchanged": bits_of(kept.optimizer) == before,
            "num_kept": len(kept.optimizer.state),
        }
    return results


def renamed(network: nn.Module) -> None:
    network.head = network.lm_head
    del network.lm_head


def widened(network: nn.Module) -> None:
    network.lm_head = nn.Linear(8, 12, bias=False).double()


def nothing_wrong() -> Results:
    return refused(FOLDER / "good")


def shard_missing() -> Results:
    return refused(damaged("missing", lambda p: (p / "__1_0.distcp").unlink()))


def first_shard_missing() -> Results:
    return refused(damaged("first", lambda p: (p / "__0_0.distcp").unlink()))


def shard_truncated() -> Results:
    return refused(damaged("truncated", lambda p: halve(p / "__1_0.distcp")))


def metadata_missing() -> Results:
    return refused(damaged("metadata", lambda p: (p / ".metadata").unlink()))


def metadata_truncated() -> Results:
    return refused(damaged("half", lambda p: halve(p / ".metadata")))


def no_folder() -> Results:
    return refused(FOLDER / "nowhere")


def parameter_renamed() -> Results:
    return refused(FOLDER / "good", change=renamed)


def parameter_renamed_and_partly_loaded() -> Results:
    return refused(FOLDER / "good", change=renamed, partial=True)


def other_shape() -> Results:
    return refused(FOLDER / "good", change=widened)


def other_class() -> Results:
    return refused(FOLDER / "good", SGD)


def other_class_with_the_same_keys() -> Results:
    return refused(FOLDER / "good", {**CONFIG, "optimizer": "Adam"})


def strict_and_different() -> Results:
    return refused(FOLDER / "good", {**CONFIG, "lr": 0.5}, on_resume="strict")


def container_all_or_nothing() -> Results:
    """Load a container by copies of its state, from one that lost a shard."""
    kept = built(CONFIG, lambda _: None, is_trained=True)
    container: Any = build_optimizers({"actor": kept.network}, {"actor": CONFIG})
    container.step()
    dcp.save({"optimizer": container}, checkpoint_id=FOLDER / "container")
    saved = kept_by(container)
    container.step()
    before = kept_by(container)

    def attempt() -> None:
        copies = optimizer_state_dict(container, templates=True)
        state = {"optimizer": {**container.state_dict(), **copies}}
        dcp.load(state, checkpoint_id=FOLDER / "container")
        container.load_state_dict(state["optimizer"])

    shard = FOLDER / "container" / "__1_0.distcp"
    move(shard, shard.with_suffix(".away"))
    failed = told(attempt)
    unchanged = kept_by(container) == before != saved
    move(shard.with_suffix(".away"), shard)
    succeeded = told(attempt)
    restored = kept_by(container) == saved
    return {
        "failed": failed,
        "unchanged": unchanged,
        "succeeded": succeeded,
        "restored": restored,
    }


def kept_by(container: Any) -> Any:
    return bits({**container.state_dict(), "groups": settings_of(container)})


def move(path: Path, other: Path) -> None:
    dist.barrier()
    if RANK == 0:
        path.rename(other)
    dist.barrier()


def save_the_good_one() -> Results:
    kept = started(CONFIG, sharded)
    kept.train(range(2))
    kept.save("good")
    return {}


run(
    save_the_good_one,
    nothing_wrong,
    shard_missing,
    first_shard_missing,
    shard_truncated,
    metadata_missing,
    metadata_truncated,
    no_folder,
    parameter_renamed,
    parameter_renamed_and_partly_loaded,
    other_shape,
    other_class,
    other_class_with_the_same_keys,
    strict_and_different,
    container_all_or_nothing,
)
