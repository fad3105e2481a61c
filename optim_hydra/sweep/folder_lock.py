"""Keep a second sweep out of the folder of one that runs."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

__all__ = ["claim"]

_CLAIMED: dict[Path, int] = {}


def claim(folder: Path) -> None:
    """Take a sweep's folder for this process, until it ends, killed or not.

    Raises:
        SystemExit: Another process has it. Hydra lets no other exception of a callback
            end the program.

    """
    if folder in _CLAIMED:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        what = f"another sweep runs in hydra.sweep.dir={folder}: wait for its end, or"
        sys.exit(f"{what} choose another folder")
    except OSError:  # a file system without locks
        os.close(descriptor)
        return
    _CLAIMED[folder] = descriptor
