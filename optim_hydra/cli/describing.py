"""Describe an optimizer class in a few words."""

from __future__ import annotations

import sys

__all__ = ["public_path"]


def public_path(cls: type) -> str:
    """Return the shortest dotted path under which a class is offered.

    Example:
        >>> import torch
        >>> public_path(torch.optim.AdamW)
        'torch.optim.AdamW'

    """
    parts = cls.__module__.split(".")
    for end in range(1, len(parts)):
        module = ".".join(parts[:end])
        if getattr(sys.modules.get(module), cls.__name__, None) is cls:
            return f"{module}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"
