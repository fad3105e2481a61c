"""A callback that measures what the jobs of a sweep take together."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psutil
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

__all__ = ["Clock"]


class Clock(Callback):
    """Write the seconds from before the first job to after the last one."""

    def on_multirun_start(self, **_: Any) -> None:
        """Begin to count."""
        self.started = time.perf_counter(), _spent()

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Write what was counted."""
        passed, spent = self.started
        counted = {"time": time.perf_counter() - passed, "cpu": _spent() - spent}
        folder = Path(config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "seconds.json").write_text(json.dumps(counted))


def _spent() -> float:
    """Return the CPU seconds of this process and of all that it has started."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
        total += times.children_user + times.children_system  # those that have ended
    return total
