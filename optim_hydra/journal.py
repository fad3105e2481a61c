"""Remember which nodes a job used and what was built from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["JOURNAL", "Journal"]


@dataclass
class Journal:
    """Full keys of the nodes that were built, and of those that were scheduled."""

    built: set[str] = field(default_factory=set)
    scheduled: set[str] = field(default_factory=set)
    is_describing: bool = False
    """Whether somebody records what is built, which takes a walk over the modules."""
    described: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Full key of a node -> its classes, arguments and groups, as plain data."""

    def clear(self) -> None:
        """Start a new job."""
        self.built.clear()
        self.scheduled.clear()
        self.described.clear()


JOURNAL = Journal()
