"""Put garbage collection off while many objects are made that stay."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["without_collection"]


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Collect nothing meanwhile; what is in no cycle is freed at once all the same.

    Ten thousand parameters have so many entries that the collector would go through
    everything in the process, model and data set included, and find nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
