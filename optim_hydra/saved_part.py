"""Take the part of saved state that belongs to one module of a container."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from optim_hydra.saved_state import SavedState

__all__ = ["part_of"]


def part_of(
    saved: SavedState, names: Collection[str], at: str, problems: list[str]
) -> SavedState:
    """Return what a container saved of one of its modules, under that one's own names.

    The module is told by the node's place, or is the only one that fits where the node
    stands at no module's; anything else is returned as it is.

    Args:
        saved: What was read.
        names: Names of the optimizer.
        at: Where its node stands.
        problems: Where to note that only another module's state is there.

    """
    if not names or any(name in saved.values for name in names):
        return saved
    some = next(iter(names))
    starts = [n.removesuffix(some) for n in saved.values if n.endswith(f".{some}")]
    fitting = [s for s in starts if all(f"{s}{name}" in saved.values for name in names)]
    own = f"{at.removesuffix('.optim')}."
    if len(fitting) != 1 and own not in fitting:
        return saved
    start = own if own in fitting else fitting[0]
    if at.endswith(".optim") and not _is_of(start, own):
        part = start.removesuffix(".")
        problems.append(
            f"the saved state is that of {part}, and this node stands at {at}: to load"
            " it all the same, take the name out,"
            f" {{k.replace('.{part}.', '.', 1): v for k, v in saved.items()}}"
        )

    def cut(mapping: dict[str, Any]) -> dict[str, Any]:
        inside = {k: v for k, v in mapping.items() if k.startswith(start)}
        return {key.removeprefix(start): value for key, value in inside.items()}

    return SavedState(
        state=cut(saved.state),
        values=cut(saved.values),
        identity=cut(saved.identity),
        shared=cut(saved.shared) | _of_classes(saved),
        part=start.removesuffix("."),
        left=cut(saved.left) | {k: v for k, v in saved.left.items() if not k},
    )


def _is_of(start: str, own: str) -> bool:
    """Whether one of two places is the end of the other."""
    first, second = f".{start}", f".{own}"
    return first.endswith(second) or second.endswith(first)


def _of_classes(saved: SavedState) -> dict[str, Any]:
    """Return what stands under a class alone, as a plain optimizer saves it."""
    classes = tuple({f"{known.cls}." for known in saved.identity.values()})
    return {k: v for k, v in saved.shared.items() if k.startswith(classes)}
