"""Read from a job's overrides what was set, and find what differs between jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["COLUMNS", "settings_of", "swept_keys"]

COLUMNS = (
    "job",
    "status",
    "result",
    "seconds",
    "error",
    "folder",
    "command",
    "same_as",
)
"""What a table of jobs has, whatever was swept; its metrics are `last.NAME`."""
_HYDRA = ("hydra.", "hydra/")
_LAUNCHER = "sweep"


def settings_of(overrides: Iterable[str]) -> dict[str, str]:
    """Return key -> value of each override but Hydra's own; no key is a column's."""
    settings: dict[str, str] = {}
    for text in overrides:
        key, _, value = text.lstrip("+~").partition("=")
        if key.startswith(_HYDRA):
            continue
        if key in COLUMNS or key.startswith("last."):
            key += " (override)"
        settings[key] = "(deleted)" if text.startswith("~") else value
    return settings


def swept_keys(sweeps: Sequence[Sequence[dict[str, str]]]) -> list[str]:
    """Name the keys whose values differ between the jobs of all sweeps.

    The launcher, `+sweep=joblib`, is of a whole sweep and no setting of a job; a key
    of the program's own that is called `sweep` differs between the jobs of one sweep.

    Args:
        sweeps: For each sweep the settings of its jobs.

    """
    differing = _differing([job for jobs in sweeps for job in jobs])
    own = any(_LAUNCHER in _differing(jobs) for jobs in sweeps)
    return [key for key in differing if own or key != _LAUNCHER]


def _differing(jobs: Sequence[dict[str, str]]) -> list[str]:
    keys = dict.fromkeys(key for job in jobs for key in job)
    return [key for key in keys if len({job.get(key) for job in jobs}) > 1]
