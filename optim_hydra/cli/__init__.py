"""The command `optim-hydra`."""
