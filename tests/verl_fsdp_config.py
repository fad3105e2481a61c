"""A config object with the fields and the manners of verl's for FSDP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any, ClassVar

__all__ = ["FSDPOptimizerConfig", "yaml_node"]


@dataclass
class FSDPOptimizerConfig(Mapping[str, Any]):
    """A mapping whose missing keys are missing attributes, and mostly frozen."""

    mutable: ClassVar[set[str]] = {
        "clip_grad",
        "total_training_steps",
        "lr_warmup_steps",
        "lr_scheduler_type",
    }
    _target_: str = ""
    lr: float = 1e-3
    lr_warmup_steps_ratio: float = 0.0
    total_training_steps: int = -1
    weight_decay: float = 0.01
    lr_warmup_steps: int | None = -1
    betas: tuple[float, float] = (0.9, 0.999)
    clip_grad: float = 1.0
    grad_clip: float | None = None
    optimizer: str = "AdamW"
    optimizer_impl: str = "torch.optim"
    min_lr_ratio: float | None = None
    warmup_style: str | None = None
    lr_scheduler_type: str = "constant"
    num_cycles: float = 0.5
    override_optimizer_config: dict[str, Any] | None = None
    zero_indexed_step: bool = True

    def __post_init__(self) -> None:
        if self.warmup_style is not None:
            self.lr_scheduler_type = self.warmup_style
        if self.grad_clip is not None:
            self.clip_grad = self.grad_clip

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self) and name not in self.mutable:
            raise FrozenInstanceError(name)
        super().__setattr__(name, value)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


def yaml_node() -> dict[str, Any]:
    """Return what verl's file for FSDP has."""
    node = dict(FSDPOptimizerConfig())
    del node["grad_clip"]
    node["_target_"] = "verl.workers.config.FSDPOptimizerConfig"
    return {**node, "betas": [0.9, 0.999], "min_lr_ratio": 0.0}
