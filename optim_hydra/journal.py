"""Remember which nodes a job used, to name those that nobody read."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["JOURNAL", "Journal"]


@dataclass
class Journal:
    """Full keys of the nodes that were built, and of those that were scheduled."""

    built: set[str] = field(default_factory=set)
    scheduled: set[str] = field(default_factory=set)

    def clear(self) -> None:
        """Start a new job."""
        self.built.clear()
        self.scheduled.clear()


JOURNAL = Journal()
