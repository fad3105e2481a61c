"""Remark on what a node leaves to the library, and on what its class does not need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer

from optim_hydra.implementation import told_fastest
from optim_hydra.needs import need_of
from optim_hydra.parameters import read_parameters
from optim_hydra.planning import Plan
from optim_hydra.signature import signature_of

__all__ = ["remarks_on"]


def remarks_on(
    plan: Plan, model: nn.Module | None = None, optimizer: Optimizer | None = None
) -> list[str]:
    """Say what `implementation: fastest` is, and which schedule is one too many.

    Args:
        plan: The node's.
        model: The model on the meta device, if there is one.
        optimizer: What was built for it.

    """
    texts = list(_schedules(plan))
    if plan.optim.implementation == "fastest":
        texts += _implementations(plan, model, optimizer)
    return list(dict.fromkeys(texts))


def _implementations(
    plan: Plan, model: nn.Module | None, optimizer: Optimizer | None
) -> Iterator[str]:
    is_sparse = model is not None and read_parameters(model).has_sparse(())
    held = {type(each): each for each in getattr(optimizer, "optimizers", [optimizer])}
    for variant in (plan.node, *plan.rules.values()):
        own = held.get(variant.cls, optimizer)
        tensors: Sequence[Tensor] | None = None
        if own is not None:
            tensors = [p for group in own.param_groups for p in group["params"]]
        if is_sparse:
            tensors = []
        told = told_fastest(variant.cls, tensors, variant.arguments.kwargs)
        yield f"implementation of {variant.cls.__name__}, the fastest: {told}"


def _schedules(plan: Plan) -> Iterator[str]:
    own = plan.optim.lr_scheduler_type
    kinds = [(plan.node, own)]
    for number, variant in plan.rules.items():
        rule = plan.optim.param_groups[number]
        kinds.append((variant, rule.get("lr_scheduler_type", own)))
    for variant, kind in kinds:
        if kind != "constant" and _is_schedule_free(variant.cls):
            what = f"{variant.cls.__name__} averages its steps, in place of a schedule"
            yield f"{what} that decays: write lr_scheduler_type=constant, not {kind}"


def _is_schedule_free(cls: type) -> bool:
    """Whether a class weighs its steps by their rate, to train on and to average."""
    is_kept = need_of(cls).protocol in {"train_eval_modes", "closure"}
    return is_kept and "weight_lr_power" in signature_of(cls).arguments
