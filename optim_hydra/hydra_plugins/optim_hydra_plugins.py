"""Where Hydra looks for plugins: a launcher, the search path and its source."""

from optim_hydra import local_launcher as _local_launcher
from optim_hydra.source import MigratingSearchPath as MigratingSearchPath
from optim_hydra.source import MigratingSource as MigratingSource


class LocalLauncher(_local_launcher.ForkedJobs):
    """Run jobs on this machine; Hydra takes a launcher of this package only."""
