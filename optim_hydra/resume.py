"""Restore saved state into an optimizer by name: check everything, then change it."""

from __future__ import annotations

import copy
import logging
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.collection import without_collection
from optim_hydra.errors import OptimHydraWarning, Problem, WrongObjectError
from optim_hydra.resume_values import Difference, plan_values
from optim_hydra.saved_schedules import load_schedules, saved_schedules
from optim_hydra.saved_state import SavedState, StateError, part_of, read_saved
from optim_hydra.scheduled_lr import RATES_TAKEN
from optim_hydra.shared_state import plan_shared
from optim_hydra.state_checks import check_fit
from optim_hydra.state_placement import placed
from optim_hydra.state_slots import Slot, leaves, place_of, slots_of
from optim_hydra.unmatched import listed
from optim_hydra.watch import names_in_order

__all__ = ["ResumeReport", "load_optimizer_state_dict"]

log = logging.getLogger(__name__)
Policy = Literal["config", "checkpoint", "strict"]


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

    def __str__(self) -> str:
        """Return one line, and one for each difference."""
        text = f"restored the state of {self.num_restored} parameters"
        if self.fresh:
            text += f", started {listed(self.fresh)} without state"
        if self.dropped:
            text += f", left {listed(self.dropped)} out, frozen now"
        return "\n  ".join([text, *map(str, self.differences)])


@torch.inference_mode(mode=False)  # what is restored has to be updated later
@without_collection()
def load_optimizer_state_dict(
    optimizer: Optimizer,
    saved: Mapping[str, Any],
    *,
    on_resume: Policy | None = None,
    missing: Literal["error", "fresh"] = "error",
) -> ResumeReport:
    """Restore saved state, matched by parameter name and never by order.

    Groups may have been regrouped. Settings (lr, betas, weight decay) follow
    `on_resume`, counters that a class keeps in its groups are always restored, and
    `fused`, `foreach`, `capturable` always stay this run's. Every difference is
    reported. The schedules that a container advances go on at their saved step.

    Args:
        optimizer: What `build_optimizer` or `build_optimizers` returned.
        saved: What `optimizer_state_dict`, `optimizer.state_dict()`, torchtitan or
            torch.distributed.checkpoint saved.
        on_resume: `config`: this run's settings stay; `checkpoint`: the saved ones are
            taken; `strict`: a difference is an error. None: as the node says.
        missing: `fresh`: parameters without a saved state, or with one of another
            class, start without, and so does a schedule; `error`: they are an error.

    Returns:
        What was restored and what differs.

    Raises:
        StateError: The saved state does not fit; nothing is changed.
        WrongObjectError: An argument is of the wrong kind.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer, optimizer_state_dict
        >>> module = nn.Linear(2, 1)
        >>> optimizer = build_optimizer(module, {"lr": 0.1})
        >>> module(torch.ones(1, 2)).sum().backward()
        >>> optimizer.step()
        >>> saved = optimizer_state_dict(optimizer)
        >>> resumed = build_optimizer(module, {"lr": 0.2, "no_decay": ["bias"]})
        >>> print(load_optimizer_state_dict(resumed, saved))
        restored the state of 2 parameters
          lr: saved 0.1, now 0.2 (weight, bias)
          weight_decay: saved 0.01, now 0.0 (bias)

    """
    _check_words(optimizer, on_resume, missing)
    slots = slots_of(optimizer)
    if on_resume is not None:
        slots = [slot._replace(on_resume=on_resume) for slot in slots]
    state = read_saved(saved, (slot.name for slot in slots))
    problems: list[str] = []
    if state.by_order:
        state = _by_order(optimizer, slots, state, problems)
        _raise_if(problems, optimizer)
    state = part_of(state, {slot.name for slot in slots}, place_of(optimizer))
    allow_missing = missing == "fresh"
    schedules = saved_schedules(optimizer, saved, problems, allow_missing=allow_missing)
    fit = check_fit(optimizer, slots, state, problems, allow_missing=allow_missing)
    afresh = frozenset(fit.fresh)
    known = [slot for slot in slots if slot.name not in afresh]
    updates, differences = plan_values(known, state, problems)
    strict = {slot.name for slot in slots if slot.on_resume == "strict"}
    problems += [str(d) for d in differences if strict & set(d.names)]
    is_whole = bool(state.identity)
    calls = plan_shared(optimizer, state.shared, problems, is_whole=is_whole)
    _raise_if(problems, optimizer)
    if state.by_order:
        text = "the saved state has no names: it was matched by order and shape"
        warnings.warn(text, OptimHydraWarning, stacklevel=3)  # past the decorator
    new = [(slot, _copied(slot, state)) for slot in known]
    for slot, values in new:
        slot.set_state(values)
    for slot in slots:
        if slot.name in afresh:
            slot.set_state({})
    for update in updates:
        update.apply()
    for each in [optimizer, *getattr(optimizer, "optimizers", [])]:
        policies = {policy for *_, policy in leaves(each)}
        taken = (on_resume or policies) in ("checkpoint", {"checkpoint"})
        vars(each)[RATES_TAKEN] = taken
    for call in calls:
        call()
    load_schedules(optimizer, schedules)
    num = sum(1 for _, values in new if values)
    fresh = fit.fresh + [slot.name for slot, values in new if num and not values]
    report = ResumeReport(num, differences, fresh, fit.dropped)
    level = logging.WARNING if differences or fresh or fit.dropped else logging.INFO
    log.log(level, "%s", report)
    return report


def _raise_if(problems: Sequence[str], optimizer: Optimizer) -> None:
    if problems:
        at = place_of(optimizer)
        raise StateError([Problem(what, at, StateError) for what in problems])


def _check_words(optimizer: object, on_resume: object, missing: object) -> None:
    if not isinstance(optimizer, Optimizer):
        msg = f"the first argument is of type {type(optimizer).__name__}: give the"
        msg += " optimizer, then what was saved"
        raise WrongObjectError(msg)
    if on_resume not in (None, "config", "checkpoint", "strict"):
        msg = f"on_resume={on_resume!r} is not one of config, checkpoint, strict"
        raise WrongObjectError(msg)
    if missing not in ("error", "fresh"):
        msg = f"missing={missing!r} is not one of error, fresh"
        raise WrongObjectError(msg)


def _by_order(
    optimizer: Optimizer,
    slots: Sequence[Slot],
    state: SavedState,
    problems: list[str],
) -> SavedState:
    """Give positions their names, if the numbers agree.

    They are those of equal groups, or, saved as one group, those of the module.
    """
    if len(slots) != len(state.values):
        problems.append(
            f"the saved state has no names and {len(state.values)} parameters, the"
            f" optimizer has {len(slots)}: they can't be matched"
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


def _copied(slot: Slot, state: SavedState) -> dict[str, Any]:
    copied = {}
    for key, value in state.state.get(slot.name, {}).items():
        own = value
        if key == "step" and isinstance(value, int) and _counts_in_tensors(slot):
            own = torch.tensor(float(value))  # saved by torch before 1.12
        is_tensor = isinstance(own, Tensor)
        copied[key] = placed(own, key, slot) if is_tensor else copy.deepcopy(own)
    return copied


def _counts_in_tensors(slot: Slot) -> bool:
    cls = type(slot.optimizer)
    return cls.__module__.startswith("torch.optim.") and cls.__name__ != "SparseAdam"
