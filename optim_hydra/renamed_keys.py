"""Own the one table of renamed keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optim_hydra.version import __version__

__all__ = ["RENAMED_KEYS", "RenamedKey", "conflict", "same_value"]


@dataclass(frozen=True)
class RenamedKey:
    """One rename: `old` is read as `new` until version `removed_in`."""

    old: str
    new: str
    since: str
    removed_in: str
    unset: tuple[Any, ...]
    """Values of the new key that count as "nobody set it"."""
    null_is_a_value: bool = False
    """Whether null means something under the new key."""

    @property
    def is_removed(self) -> bool:
        """Whether this version no longer reads the old key."""
        return _version(__version__) >= _version(self.removed_in)

    @property
    def removal(self) -> str:
        """What to say of the old key once it is removed."""
        return f"{self.old} was removed in {self.removed_in}: write {self.new}"

    def is_set(self, value: Any) -> bool:
        """Whether the new key was set: its default counts as not set."""
        return not any(same_value(value, unset) for unset in self.unset)


RENAMED_KEYS: dict[str, RenamedKey] = {
    key.old: key
    for key in (
        RenamedKey(
            "warmup_steps_ratio", "lr_warmup_steps_ratio", "0.1.0", "1.0.0", (None, 0.0)
        ),
        RenamedKey(
            "warmup_style", "lr_scheduler_type", "0.1.0", "1.0.0", (None, "constant")
        ),
        RenamedKey(
            "lr_scheduler", "lr_scheduler_type", "0.1.0", "1.0.0", (None, "constant")
        ),
        RenamedKey(
            "grad_clip", "clip_grad", "0.1.0", "1.0.0", (None,), null_is_a_value=True
        ),
    )
}


def same_value(first: Any, second: Any) -> bool:
    """Compare two values as numbers where both are, else as they are."""
    try:
        return float(first) == float(second)
    except (TypeError, ValueError):
        return bool(first == second)


def conflict(old: str, new: str) -> str:
    """Describe two spellings of one key that disagree in one layer."""
    return f"{old} and {new} are one key with two values: keep one of them"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3])
