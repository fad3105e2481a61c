"""Take a stretch out of a line, and the line where nothing else is on it."""

from __future__ import annotations

import re

from optim_hydra.migrating.edits import CannotEditError, Edit

__all__ = ["removed"]

_BLANKS = re.compile(r"[ \t]+")


def removed(text: str, start: int, end: int) -> Edit:
    """Return the edit that removes one or several words of a command.

    Raises:
        CannotEditError: It stands alone, where something has to stand.

    """
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    after = text[end:stop].strip()
    if not text[line:start].strip() and after in ("", "\\"):
        # The last one of a continued command: the line before it no longer goes on.
        before = None if after else re.search(r"[ \t]*\\\r?\n[ \t]*$", text[:start])
        if before:
            return Edit(before.start(), end, "")
        return Edit(line, min(stop + 1, len(text)), "")
    blanks = re.search(r"[ \t]+$", text[line:start])
    if blanks and text[line:start].strip():
        return Edit(line + blanks.start(), end, "")
    following = _BLANKS.match(text, end)
    if following is None:
        msg = "it stands alone here: remove it"
        raise CannotEditError(msg)
    return Edit(start, following.end(), "")
