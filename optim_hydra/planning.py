"""Plan what a node asks for: a class and its arguments, for the node and each rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from optim_hydra.arguments import Planned, plan_arguments
from optim_hydra.checking import read_config
from optim_hydra.errors import Problems, UnknownKeyError, join_key
from optim_hydra.given import (
    EXTRA,
    FIELDS,
    Given,
    given_by_config,
    given_by_plain_node,
    given_by_rule,
)
from optim_hydra.need_checks import check_wants, is_refused
from optim_hydra.needs import need_of
from optim_hydra.node import Node
from optim_hydra.schema import OptimConfig, config_of
from optim_hydra.signature import signature_of
from optim_hydra.targets import load_class, plain_target, resolve_target
from optim_hydra.wrapping import Wrapper, find_wrapper, inner_config, inner_problems

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = ["Plan", "Variant", "plan_node"]


@dataclass(frozen=True)
class Variant:
    """A class and its arguments, as the node or one of its rules gives them."""

    cls: type[Optimizer]
    arguments: Planned
    at: str = ""
    """Where it is said: nothing for the node, `param_groups[0]` for a rule."""
    decays_itself: bool = False
    """Whether a rule sets the weight decay, which then wins over `no_decay`."""


@dataclass(frozen=True)
class Plan:
    """Everything that a node says, fitted to its classes; nothing is built yet."""

    optim: OptimConfig
    node: Variant
    rules: dict[int, Variant]
    """Number of a rule -> its variant; rules that freeze have none."""
    wrappers: tuple[Wrapper, ...] = ()
    """Classes around the node's own, the innermost first."""

    @property
    def has_groups(self) -> bool:
        """Whether parameters may differ in their values."""
        optim = self.optim
        own = need_of(self.node.cls).group_keys.keys() & self.node.arguments.keys.keys()
        return bool(optim.param_groups or optim.no_decay or optim.layer_decay or own)

    @property
    def unused_keys(self) -> list[str]:
        """Keys of the node whose values no class of it takes."""
        if self.wrappers:
            return []
        variants = (self.node, *self.rules.values())
        taken = {name for variant in variants for name in variant.arguments.kwargs}
        keys = {name: name for name in FIELDS}
        extra = self.optim.override_optimizer_config or {}
        keys |= {name: f"{EXTRA}.{name}" for name in extra}
        return [key for name, key in keys.items() if name not in taken]


def plan_node(
    node: Node, problems: Problems, *, allow_open: bool = False
) -> Plan | None:
    """Find the classes and fit their arguments; note what is wrong."""
    if node.target:
        return _plan_plain(node, problems)
    optim = read_config(node, problems, allow_open=allow_open)
    return _plan(optim, problems) if _has_class(node, problems) else None


def _plan(optim: OptimConfig, problems: Problems) -> Plan | None:
    target = resolve_target(optim.optimizer_impl, optim.optimizer, problems)
    cls = None if target is None else load_class(target, problems)
    if cls is None or is_refused(cls, problems):
        return None
    wrapper = find_wrapper(cls, optim.override_optimizer_config)
    if wrapper is not None:
        return _plan_wrapped(optim, wrapper, problems)
    given = given_by_config(optim, problems)
    arguments = plan_arguments(cls, given, problems, strict=optim.strict)
    check_wants(cls, arguments, problems)
    rules = {}
    for number, rule in enumerate(optim.param_groups):
        if "freeze" not in rule:
            variant = _plan_rule(optim, cls, rule, number, problems)
            if variant is not None:
                rules[number] = variant
    plan = Plan(optim, Variant(cls, arguments), rules)
    _check_reach(plan, problems)
    return plan


def _plan_wrapped(
    optim: OptimConfig, wrapper: Wrapper, problems: Problems
) -> Plan | None:
    """Plan the wrapped optimizer, and the wrapper's own arguments around it."""
    extra = dict(optim.override_optimizer_config or {})
    extra.pop(wrapper.argument, None)
    for name in [n for n in FIELDS if n in extra]:
        if name not in signature_of(wrapper.cls).arguments:
            del extra[name]
            what = f"the wrapped optimizer takes {name} from the node: set it there"
            problems.add(what, f"{EXTRA}.{name}", UnknownKeyError)
    given = [
        Given(name, v, f"override_optimizer_config.{name}") for name, v in extra.items()
    ]
    if not wrapper.takes_instance:
        # The class is what the argument takes; what it is has its own problems.
        given.append(Given(wrapper.argument, "", wrapper.argument))
    arguments = plan_arguments(wrapper.cls, given, problems, strict=optim.strict)
    arguments.kwargs.pop(wrapper.argument, None)
    inner = inner_config(optim, wrapper, problems)
    if inner is None:
        return None
    own = Problems(problems.at)
    plan = _plan(inner, own)
    problems.found += inner_problems(own.found, problems.at, wrapper)
    if plan is None:
        return None
    complete = replace(wrapper, arguments=arguments)
    return replace(plan, wrappers=(*plan.wrappers, complete))


def _plan_plain(node: Node, problems: Problems) -> Plan | None:
    problems.found += node.unresolved
    target = plain_target(node.target, problems)
    cls = None if target is None else load_class(target, problems)
    if cls is None or is_refused(cls, problems):
        return None
    given = given_by_plain_node(node.arguments())
    arguments = plan_arguments(cls, given, problems, strict=True)
    check_wants(cls, arguments, problems)
    return Plan(config_of({"layer_decay": None}), Variant(cls, arguments), {})


def _has_class(node: Node, problems: Problems) -> bool:
    """Whether both fields that name the class have a value that can be used."""
    keys = ("optimizer", "optimizer_impl")
    wrong = {join_key(node.at, key) for key in keys}
    is_open = any(node.items.get(key) == "???" for key in keys)
    return not is_open and not wrong & {problem.key for problem in problems.found}


def _plan_rule(
    optim: OptimConfig,
    node_cls: type[Optimizer],
    rule: dict[str, Any],
    number: int,
    problems: Problems,
) -> Variant | None:
    at = f"param_groups[{number}]"
    own = Problems(join_key(problems.at, at))
    cls: type[Optimizer] | None = node_cls
    if "optimizer" in rule or "optimizer_impl" in rule:
        impl = rule.get("optimizer_impl", optim.optimizer_impl)
        target = resolve_target(impl, rule.get("optimizer", optim.optimizer), own)
        cls = None if target is None else load_class(target, own)
        cls = None if cls is None or is_refused(cls, own) else cls
    variant = None
    if cls is not None and find_wrapper(cls, rule.get("override_optimizer_config")):
        what = f"{cls.__name__} wraps an optimizer, and with it all parameters: name it"
        own.add(f"{what} in the node", "optimizer")
        cls = None
    if cls is not None:
        given = given_by_rule(optim, rule, own, same_class=cls is node_cls)
        arguments = plan_arguments(cls, given, own, strict=optim.strict)
        check_wants(cls, arguments, own)
        decays = "weight_decay" in rule
        variant = Variant(cls, arguments, at, decays)
    problems.found += own.found
    return variant


def _check_reach(plan: Plan, problems: Problems) -> None:
    """Note where `no_decay` or `layer_decay` could change nothing."""
    classes = {variant.cls for variant in (plan.node, *plan.rules.values())}
    for key, name in (("no_decay", "weight_decay"), ("layer_decay", "lr")):
        takes = any(name in signature_of(cls).arguments for cls in classes)
        if getattr(plan.optim, key) and not takes:
            what = f"{plan.node.cls.__name__} takes no {name}: {key} has no effect"
            problems.add(what, key, UnknownKeyError)
