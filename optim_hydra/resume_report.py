"""Own `ResumeReport`: what a load restored, and what it left as it was."""

from __future__ import annotations

from dataclasses import dataclass, field

from optim_hydra.resume_values import Difference
from optim_hydra.unmatched import listed

__all__ = ["ResumeReport"]


@dataclass(frozen=True)
class ResumeReport:
    """What a load restored, and where the saved run was another one."""

    num_restored: int
    """Parameters whose state was restored."""
    differences: list[Difference] = field(default_factory=list)
    """Settings that were saved with other values than this run's."""
    fresh: list[str] = field(default_factory=list)
    """Parameters that start without state."""
    dropped: list[str] = field(default_factory=list)
    """Saved parameters that are frozen now."""
    part: str = ""
    """What the names began with that were loaded, where more was saved."""

    def __str__(self) -> str:
        """Return one line, and one for each difference."""
        text = f"restored the state of {self.num_restored} parameters"
        text += f" that was saved below {self.part}" * bool(self.part)
        if self.fresh:
            text += f", started {listed(self.fresh)} without state"
        if self.dropped:
            text += f", left {listed(self.dropped)} out, frozen now"
        return "\n  ".join([text, *map(str, self.differences)])
