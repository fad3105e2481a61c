"""Where Hydra looks for plugins: the search path and the source behind it."""

from optim_hydra.source import MigratingSearchPath as MigratingSearchPath
from optim_hydra.source import MigratingSource as MigratingSource
