"""Give the parameters of state without names their names, by order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from torch.optim import Optimizer

from optim_hydra.saved_state import SavedState
from optim_hydra.state_slots import Slot
from optim_hydra.watch import names_in_order

__all__ = ["matched_by_order"]


def matched_by_order(
    optimizer: Optimizer,
    slots: Sequence[Slot],
    state: SavedState,
    problems: list[str],
) -> SavedState:
    """Give positions their names, if the numbers agree, and note it if they don't.

    They are those of equal groups, or, saved as one group, those of the module.
    """
    if len(slots) != len(state.values):
        problems.append(
            f"the saved state has no names and {len(state.values)} parameters, the"
            f" optimizer has {len(slots)}: they can't be matched; build the optimizer"
            " of the module that was saved, load it there, and save it by"
            " optimizer_state_dict, whose entries have names"
        )
        return SavedState()
    names = [slot.name for slot in slots]
    groups = Counter(id(slot.group) for slot in slots)
    if state.sizes != list(groups.values()):
        own = set(names)
        names = [name for name in names_in_order(optimizer) if name in own]
        if len(state.sizes) != 1 or len(names) != len(slots):
            problems.append(
                f"the saved state has no names and groups of {_numbers(state.sizes)}"
                f" parameters, the optimizer of {_numbers(groups.values())}: load it"
                " into the grouping that it was saved with, save that by"
                " optimizer_state_dict, and load this into the new one"
            )
            return SavedState()
    return SavedState(
        state=dict(zip(names, (state.state[k] for k in state.values), strict=True)),
        values=dict(zip(names, state.values.values(), strict=True)),
        shared=state.shared,
        by_order=True,
    )


def _numbers(sizes: Iterable[int]) -> str:
    return ", ".join(map(str, sizes))
