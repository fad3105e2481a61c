"""Restore saved state into an optimizer by name: check everything, then change it."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from optim_hydra.collection import without_collection
from optim_hydra.errors import OptimHydraWarning, Problem, WrongObjectError
from optim_hydra.fresh_state import fresh_states
from optim_hydra.left_out import left_out
from optim_hydra.packed_state import unpacked
from optim_hydra.put_back import all_or_nothing
from optim_hydra.resume_report import ResumeReport
from optim_hydra.resume_values import Difference, plan_values
from optim_hydra.saved_entries import read_saved
from optim_hydra.saved_order import matched_by_order
from optim_hydra.saved_part import part_of
from optim_hydra.saved_schedules import (
    load_schedules,
    saved_schedules,
    schedule_differences,
)
from optim_hydra.saved_state import SavedState, StateError
from optim_hydra.scheduled_lr import POLICY, RATES_TAKEN
from optim_hydra.shared_state import plan_shared
from optim_hydra.state_checks import check_fit, check_values
from optim_hydra.state_placement import placed
from optim_hydra.state_slots import Slot, leaves, place_of, slots_of
from optim_hydra.trial_step import note_what_fails
from optim_hydra.unwrapping import unwrapped

__all__ = ["ResumeReport", "load_optimizer_state_dict"]

log = logging.getLogger(__name__)
Policy = Literal["config", "checkpoint", "strict"]


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
        saved: What `optimizer_state_dict`, packed or not, `optimizer.state_dict()`,
            torchtitan or torch.distributed.checkpoint saved.
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
    _check_words(on_resume, missing)
    hint = "give the optimizer, then what was saved"
    bare = unwrapped(optimizer, "the first argument", hint)
    with _policy(bare, on_resume):
        report = _load(bare, unpacked(saved), allow_missing=missing == "fresh")
    differs = report.differences or report.fresh or report.dropped
    log.log(logging.WARNING if differs else logging.INFO, "%s", report)
    return report


@contextmanager
def _policy(optimizer: Optimizer, on_resume: Policy | None) -> Iterator[None]:
    """Let an optimizer, what it holds and its schedules follow what a call says."""
    schedulers = getattr(optimizer, "lr_schedulers", {}).values()
    held = [leaf for _, leaf, _ in leaves(optimizer)]
    held += [scheduler.optimizer for scheduler in schedulers]
    each_once = {id(each): vars(each) for each in (optimizer, *held)}.values()
    before = [each.get(POLICY) for each in each_once]
    if on_resume is not None:
        for each in each_once:
            each[POLICY] = on_resume
    try:
        yield
    finally:
        for each, policy in zip(each_once, before, strict=True):
            each.pop(POLICY, None)
            if policy is not None:
                each[POLICY] = policy


def _load(
    optimizer: Optimizer, saved: Mapping[str, Any], *, allow_missing: bool
) -> ResumeReport:
    slots = slots_of(optimizer)
    state = read_saved(saved, (slot.name for slot in slots))
    problems: list[str] = []
    if state.by_order:
        state = matched_by_order(optimizer, slots, state, problems)
        _raise_if(problems, optimizer)
    names = {slot.name for slot in slots}
    state = part_of(state, names, place_of(optimizer), problems)
    check_values(slots, state, problems)
    _raise_if(problems, optimizer)
    schedules = saved_schedules(optimizer, saved, problems, allow_missing=allow_missing)
    fit = check_fit(optimizer, slots, state, problems, allow_missing=allow_missing)
    afresh = frozenset(fit.fresh)
    known = [slot for slot in slots if slot.name not in afresh]
    updates, differences = plan_values(known, state, problems)
    problems += _refused(slots, differences)
    if not problems:
        differences += schedule_differences(optimizer, schedules)
        note_what_fails(known, state.state, differences, problems, fit.unsure)
    is_whole = bool(state.identity)
    calls = plan_shared(optimizer, state.shared, problems, is_whole=is_whole)
    _raise_if(problems, optimizer)
    for text in left_out(optimizer, slots, state, fit):
        warnings.warn(text, OptimHydraWarning, stacklevel=4)  # past the decorator
    new = [(slot, _copied(slot, state)) for slot in known]
    started = fresh_states(slot for slot in slots if slot.name in afresh)
    with torch.no_grad(), all_or_nothing(optimizer, slots):
        for slot, values in new:
            slot.set_state(values)
        for slot in slots:
            if slot.name in afresh:
                slot.set_state(started[slot.name])
        for update in updates:
            update.apply()
        for each in [optimizer, *getattr(optimizer, "optimizers", [])]:
            policies = {policy for *_, policy in leaves(each)}
            vars(each)[RATES_TAKEN] = object() if policies == {"checkpoint"} else None
        for call in calls:
            call()
        load_schedules(optimizer, schedules)
    num = sum(1 for _, values in new if values)
    fresh = fit.fresh + [slot.name for slot, values in new if num and not values]
    return ResumeReport(num, differences, fresh, fit.dropped, state.part)


def _refused(slots: Sequence[Slot], differences: Sequence[Difference]) -> list[str]:
    strict = {slot.name for slot in slots if slot.on_resume == "strict"}
    refused = [str(d) for d in differences if strict & set(d.names)]
    hint = "on_resume is strict: config keeps this run's settings, checkpoint takes"
    return [*refused, f"{hint} the saved"] if refused else []


def _raise_if(problems: Sequence[str], optimizer: Optimizer) -> None:
    if problems:
        at = place_of(optimizer)
        raise StateError([Problem(what, at, StateError) for what in problems])


def _check_words(on_resume: object, missing: object) -> None:
    if on_resume not in (None, "config", "checkpoint", "strict"):
        msg = f"on_resume={on_resume!r} is not one of config, checkpoint, strict"
        raise WrongObjectError(msg)
    if missing not in ("error", "fresh"):
        msg = f"missing={missing!r} is not one of error, fresh"
        raise WrongObjectError(msg)


def _copied(slot: Slot, state: SavedState) -> dict[str, Any]:
    copied = {}
    for key, value in state.state.get(slot.name, {}).items():
        own = value
        if key == "step" and _is_whole(value) and _counts_in_tensors(slot):
            own = torch.tensor(float(value))  # saved by torch before 1.12
        is_tensor = isinstance(own, Tensor)
        copied[key] = placed(own, key, slot) if is_tensor else copy.deepcopy(own)
    return copied


def _is_whole(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.dtype.is_floating_point
    return isinstance(value, int)


def _counts_in_tensors(slot: Slot) -> bool:
    cls = type(slot.optimizer)
    return cls.__module__.startswith("torch.optim.") and cls.__name__ != "SparseAdam"
