"""Find out which jobs a sweep will have, and which command repeats it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

__all__ = ["planned_jobs", "typed_command"]

log = logging.getLogger(__name__)
_BASIC = f"{BasicSweeper.__module__}.{BasicSweeper.__name__}"


def planned_jobs(config: DictConfig) -> list[list[str]] | None:
    """Return the overrides of each job; None for a sweeper that decides as it goes."""
    sweeper = config.hydra.sweeper
    if sweeper.get("_target_") != _BASIC:
        return None
    params: Any = OmegaConf.to_container(sweeper.get("params") or OmegaConf.create({}))
    texts = [f"{key}={value}" for key, value in params.items()]
    typed: Any = OmegaConf.to_container(config.hydra.overrides.task)
    try:
        overrides = OverridesParser.create().parse_overrides([*texts, *typed])
        batches = BasicSweeper.split_arguments(overrides, max_batch_size=None)
    except Exception:
        log.debug("the jobs of this sweep are not known from the start", exc_info=True)
        return None
    return [list(job) for batch in batches for job in batch]


def typed_command() -> tuple[list[str], str]:
    """Return the command line of this process, interpreter first, and its folder."""
    return [sys.executable, *sys.orig_argv[1:]], str(Path.cwd())
