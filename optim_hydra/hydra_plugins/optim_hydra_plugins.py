"""Where Hydra looks for plugins: a launcher, the search path and its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher

from optim_hydra.source import MigratingSearchPath as MigratingSearchPath
from optim_hydra.source import MigratingSource as MigratingSource


class LocalLauncher(Launcher):
    """Run jobs on this machine; Hydra imports it in every program, and so no more."""

    def __init__(self, n_jobs: int | None = None) -> None:
        """Take what `hydra.launcher` says; see `ForkedJobs`."""
        from optim_hydra.local_launcher import ForkedJobs  # noqa: PLC0415 - 6 ms

        self._jobs = ForkedJobs(n_jobs)

    def setup(self, **given: Any) -> None:
        """Keep what every job gets; see Hydra."""
        self._jobs.setup(**given)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs; see Hydra."""
        return self._jobs.launch(job_overrides, initial_job_idx)
