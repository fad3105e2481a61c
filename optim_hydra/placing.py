"""Place each parameter: its rule, its layer's share of lr, whether it is decayed."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from typing import NamedTuple

from torch import nn

from optim_hydra.errors import OptimHydraWarning, Problems
from optim_hydra.layers import layer_scales
from optim_hydra.matching import Matches, match_rules
from optim_hydra.parameters import Parameters, Roots
from optim_hydra.planning import Plan
from optim_hydra.roles import roles_of
from optim_hydra.schema_groups import SCHEDULE_KEYS
from optim_hydra.structure import FLATTENED, is_flattened, structure_of
from optim_hydra.survey import Entry, survey
from optim_hydra.unmatched import check_matches

__all__ = ["Place", "place_parameters"]

log = logging.getLogger(__name__)


class Place(NamedTuple):
    """What decides the values of a parameter; equal places have equal values."""

    rule: int
    """Number of the rule, -1 for none."""
    scale: float
    """What layer decay multiplies its lr by."""
    is_exempt: bool
    """Whether `no_decay` names it."""


def place_parameters(
    parameters: Parameters, plan: Plan, problems: Problems, whole: Roots = ()
) -> list[tuple[Entry, Place]]:
    """Place the trainable parameters, in the order of the model.

    Args:
        parameters: What was read.
        plan: The planned node.
        problems: Where it is noted what does not fit.
        whole: The complete model where the parameters are only a part of it: rules
            are checked against all of its parameters.

    """
    found, reference = parameters.found, survey(whole).entries if whole else None
    entries = [] if found is None else found.entries
    if found is None:
        before = len(problems.found)
        entries = _without_modules(parameters, plan, problems)
        if len(problems.found) > before:
            return []
    if reference is None:
        places = _place(entries, parameters.roots, plan, problems)
        pairs = zip(entries, places, strict=True)
        return [(e, place) for e, place in pairs if e.parameter.requires_grad]
    places = _place(reference, whole, plan, problems)
    by_name = {
        alias.name: place
        for entry, place in zip(reference, places, strict=True)
        for alias in entry.aliases
    }
    trainable = [entry for entry in entries if entry.parameter.requires_grad]
    missing = [entry.name for entry in trainable if entry.name not in by_name]
    if missing:
        what = f"the whole model has no parameter {missing[0]}: give the model that"
        problems.add(f"{what} this part was cut from")
        return []
    return [(entry, by_name[entry.name]) for entry in trainable]


def _place(
    entries: list[Entry], roots: Roots, plan: Plan, problems: Problems
) -> list[Place]:
    optim, own = plan.optim, Problems(problems.at)
    _check_shapes(roots, plan, problems)
    names_roles = any("role" in rule for rule in optim.param_groups)
    wants_layers = optim.layer_decay is not None and not optim.layer_decay.layers
    # What no_decay exempts is known by the layer alone, wherever it stands.
    structure = structure_of(roots if names_roles or wants_layers else ())
    roles = roles_of(entries, structure) if names_roles or optim.no_decay else {}
    matches = match_rules(entries, optim.param_groups, roles)
    said = check_matches(entries, optim.param_groups, roles, matches, own)
    _check_torn(matches, plan, own)
    scales: dict[int, float] = {}
    if optim.layer_decay is not None:
        scales = layer_scales(entries, structure, optim.layer_decay, own)
    if optim.strict:
        problems.found += own.found
    else:
        said += [str(problem) for problem in own.found]
    for sentence in said:
        warnings.warn(sentence, OptimHydraWarning, stacklevel=7)
        log.warning(sentence)  # Python shows a warning once; each job has its own log
    chosen = frozenset(optim.no_decay)
    exempt = {key for key, own in roles.items() if not chosen.isdisjoint(own)}
    if not scales and not exempt:
        numbers = set(matches.rule_of)
        known = {n: Place(n, scale=1.0, is_exempt=False) for n in numbers}
        return [known[number] for number in matches.rule_of]
    ids = [id(entry.parameter) for entry in entries]
    rates = [scales.get(key, 1.0) for key in ids]
    return list(map(Place, matches.rule_of, rates, map(exempt.__contains__, ids)))


def _check_shapes(roots: Roots, plan: Plan, problems: Problems) -> None:
    """Note matchers that look at shapes which FSDP1 has taken away."""
    keys = ["no_decay"] if plan.optim.no_decay else []
    for number, rule in enumerate(plan.optim.param_groups):
        keys += [
            f"param_groups[{number}].{key}"
            for key in ("role", "ndim", "min_ndim")
            if key in rule
        ]
    if keys and is_flattened(roots):
        what = f"{FLATTENED}build the optimizer before wrapping the model"
        what += " (use_orig_params=True), or match by pattern"
        for key in keys:
            problems.add(what, key)


def _check_torn(matches: Matches, plan: Plan, problems: Problems) -> None:
    rules, num_of_rule = plan.optim.param_groups, Counter(matches.rule_of)
    for torn in matches.torn:
        named = all(
            rules[number].keys() & {"pattern", "regex"}
            for number in (torn.first, torn.other)
        )
        # Of two module types the first has it, as long as the other has something.
        matters = named or not num_of_rule[torn.other]
        if matters and not _say_the_same(plan, torn.first, torn.other):
            problems.add(str(torn), f"param_groups[{torn.other}]")


def _say_the_same(plan: Plan, first: int, second: int) -> bool:
    one, other = (plan.rules.get(number) for number in (first, second))
    if one is None or other is None:
        return one is other  # both freeze
    schedules = [
        {key: plan.optim.param_groups[n].get(key) for key in SCHEDULE_KEYS}
        for n in (first, second)
    ]
    same = one.cls is other.cls and one.arguments.kwargs == other.arguments.kwargs
    return same and schedules[0] == schedules[1]


def _without_modules(
    parameters: Parameters, plan: Plan, problems: Problems
) -> list[Entry]:
    """Make entries of named parameters; note what only a module could tell."""
    optim = plan.optim
    if parameters.are_grouped:
        what = "the program gives parameter groups, and so does the config: keep one"
        keys = ("param_groups", "no_decay", "layer_decay")
        problems.add(what, next(key for key in keys if getattr(optim, key)))
        return []
    named = [item for group in parameters.groups for item in group["params"]]
    has_names = all(isinstance(item, tuple) for item in named)
    by_name = {"pattern", "regex"} if not has_names else set()
    for number, rule in enumerate(optim.param_groups):
        for key in sorted(rule.keys() & ({"module_type", "role"} | by_name)):
            _need_module(f"param_groups[{number}].{key}", key, problems)
    for role in optim.no_decay:
        if role != "1d":
            _need_module("no_decay", role, problems)
    if optim.layer_decay is not None and not (has_names and optim.layer_decay.layers):
        _need_module("layer_decay", "layer_decay", problems)
    nobody = nn.Module()
    return [Entry(p, name, nobody, name, {}, name) for name, p in parameters.named()]


def _need_module(key: str, name: str, problems: Problems) -> None:
    what = f"{name} can't be told from bare parameters: give the module itself"
    problems.add(f"{what}, build_optimizer(module, config)", key)
