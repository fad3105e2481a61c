"""Let `python -m optim_hydra.cli` be the command too."""

from optim_hydra.cli.app import run

run()
