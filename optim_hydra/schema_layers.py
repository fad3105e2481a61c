"""Own the dataclass of layer decay, and its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optim_hydra.errors import Problems, join_key
from optim_hydra.list_checks import Texts
from optim_hydra.schema_groups import check_each
from optim_hydra.value_checks import Real, shown

__all__ = ["LayerDecayConfig", "check_layer_decay"]


@dataclass(slots=True, kw_only=True)
class LayerDecayConfig:
    """Let the learning rate fall from the last layer to the first."""

    factor: float | None = None
    """A layer's lr is this share of the next one's, in (0, 1]; null: no decay."""
    layers: list[str] = field(default_factory=list)
    """Globs, the first layer first; empty finds the layers in the module lists."""


LAYER_CHECKS: dict[str, Callable[[Any], Any]] = {
    "factor": Real(open_low=True, high=1.0, null=True),
    "layers": Texts(example="[embed.*, blocks.*, head.*]"),
}


def check_layer_decay(
    value: Any, key: str, problems: Problems
) -> LayerDecayConfig | None:
    """Return the checked config of layer decay; null, or a null factor, is none."""
    if value is None:
        return None
    if isinstance(value, LayerDecayConfig):
        value = {"factor": value.factor, "layers": value.layers}
    if not isinstance(value, Mapping):
        what = f"{shown(value)} is not a mapping: write {{factor: 0.75}}"
        problems.add(what, key)
        return None
    said = {str(k): v for k, v in value.items()}
    checked = LayerDecayConfig(**check_each(said, LAYER_CHECKS, key, problems))
    if checked.layers and said.get("factor") is None:
        problems.add("layers without a factor: set it", join_key(key, "factor"))
    return checked
