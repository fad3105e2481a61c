"""Quick ways to read a node give what OmegaConf and the schema give."""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from optim_hydra import OptimConfig
from optim_hydra.schema import config_of
from optim_hydra.tree import raw_items


class Color(Enum):
    RED = 1


@dataclasses.dataclass
class Typed:
    number: float = 1.5
    color: Color = Color.RED
    path: Path = Path("a/b")
    data: bytes = b"x"
    nothing: int | None = None
    missing: int = MISSING
    optim: OptimConfig = dataclasses.field(default_factory=OptimConfig)


LEAVES = st.none() | st.booleans() | st.integers() | st.text("a${}.?", max_size=4)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner)
    ),
    max_leaves=8,
)


def loaded(items: dict[str, Any]) -> DictConfig | None:
    try:
        return OmegaConf.create(items)
    except OmegaConfBaseException:  # a broken reference
        return None


@given(items=st.dictionaries(st.sampled_from(["x", "y"]), VALUES))
def test_raw_items_are_those_of_to_container(items: dict[str, Any]) -> None:
    config = loaded(items)
    if config is not None:
        assert raw_items(config) == OmegaConf.to_container(config, resolve=False)


def test_raw_items_of_a_structured_config() -> None:
    config = OmegaConf.structured(Typed)
    assert raw_items(config) == OmegaConf.to_container(config, resolve=False)
    assert raw_items(config)["color"] is Color.RED
    assert raw_items(config)["optim"]["lr"] == pytest.approx(1e-3)


def test_a_config_of_nothing_has_the_defaults_of_the_schema() -> None:
    plain, whole = config_of({}), OptimConfig()
    for field in dataclasses.fields(OptimConfig):
        own = getattr(whole, field.name)
        if isinstance(own, DictConfig) or OmegaConf.is_list(own):
            own = OmegaConf.to_container(own)
        assert getattr(plain, field.name) == own, field.name
    assert config_of({"lr": 0.5}).lr == pytest.approx(0.5)
