"""Hydra config files: groups under optim/, primary configs of the examples."""
