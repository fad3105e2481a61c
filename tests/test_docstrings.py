"""The examples in docstrings run and say what they print."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "optim_hydra"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in (*PACKAGE.glob("*.py"), *PACKAGE.glob("migrating/*.py"))
    if path.stem != "__init__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str) -> None:
    module = importlib.import_module(f"optim_hydra.{name}")
    flags = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
    assert doctest.testmod(module, optionflags=flags).failed == 0


def test_public_functions_have_examples() -> None:
    package = importlib.import_module("optim_hydra")
    plain = {"ConfigError", "OptimHydraError", "ActorCriticConfig", "build", "main"}
    for name in set(package.__all__) - plain:
        assert ">>>" in (getattr(package, name).__doc__ or ""), name
