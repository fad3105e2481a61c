"""Keep the edits of one node together: all of them are made, or none."""

from __future__ import annotations

from dataclasses import dataclass, field

from optim_hydra.migrating.edits import Edit, Migrated

__all__ = ["Settled"]


@dataclass
class Settled:
    """What becomes of one node, and what its author must decide before."""

    rest: str
    """What waits for a decision, as a message names it; empty: each key by itself."""
    edits: list[Edit] = field(default_factory=list)
    asked: list[tuple[int, str, str]] = field(default_factory=list)
    """Index of the text, key and question."""
    has_more: bool = False
    """Whether something waits that is not among the edits."""
    is_held: bool = False
    """Whether it waits because of other files, which say so."""

    def ask(self, index: int, key: str, why: str) -> None:
        """Note a question about the character at an index."""
        self.asked.append((index, key, why))

    @property
    def waits(self) -> bool:
        """Whether nothing is edited: half a node would be taken for a finished one."""
        return bool(self.is_held or (self.rest and self.asked))

    def note(self, migrated: Migrated) -> None:
        """Hand the edits and questions over to those of the whole text."""
        has_more = self.waits and (self.edits or self.has_more)
        suffix = f"; until then {self.rest} stays as it is" if has_more else ""
        for index, key, why in self.asked:
            migrated.ask(index, key, f"{why}{suffix}")
        if not self.waits:
            migrated.edits += self.edits
