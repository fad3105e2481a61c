"""A callback that measures how long the jobs of a sweep take together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

__all__ = ["Clock"]


class Clock(Callback):
    """Write the seconds from before the first job to after the last one."""

    def on_multirun_start(self, **_: Any) -> None:
        """Begin to count."""
        self.started = time.perf_counter()

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Write what was counted."""
        seconds = time.perf_counter() - self.started
        folder = Path(config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "seconds.txt").write_text(str(seconds))
