"""Own `build_optimizer`: one node and one model become one optimizer."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optim_hydra.errors import Problems, WrongObjectError
from optim_hydra.node import Node, read_node
from optim_hydra.references import hiding

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["build_from_node", "build_optimizer"]


def build_optimizer(
    parameters: nn.Module
    | Sequence[nn.Module]
    | Mapping[str, nn.Module]
    | Iterable[Tensor | tuple[str, Tensor] | dict[str, Any]],
    config: Any,
    *,
    provides: str | Iterable[str] = (),
    whole: nn.Module | None = None,
) -> Optimizer:
    """Build the optimizer that a config node describes.

    Everything is checked before the class is called: nothing is half-built, and all
    problems of the node come in one error.

    Args:
        parameters: A module (best: rules know types and names), several modules for
            one optimizer (a list of model parts, or name -> module), parameters,
            `(name, parameter)` pairs, or group dicts. Frozen ones are left out.
        config: A node such as `cfg.actor.optim`, an `OptimConfig`, a dict, a plain
            Hydra node (`_target_: torch.optim.SGD`), or one of verl's config objects.
        provides: What this training loop promises for classes that need it:
            `closure`, `sparse_gradients`, `train_eval_modes`.
        whole: The complete model (on the meta device will do) where `parameters` is
            only a part of it, such as a pipeline stage: rules are checked against the
            whole, so a part may lack a match.

    Returns:
        The very torch optimizer, no wrapper; an `OptimizersContainer` where the rules
        of the node name several classes.

    Raises:
        ConfigError: The node, the class or the parameters don't fit together.
        WrongObjectError: An argument is of the wrong kind.

    Example:
        >>> from torch import nn
        >>> config = {"optimizer": "SGD", "lr": 0.1}
        >>> optimizer = build_optimizer(nn.Linear(4, 2), config)
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('SGD', 0.1)

    """
    return build_from_node(
        parameters, read_node(config), promises(provides), whole=whole
    )


def promises(provides: str | Iterable[str] | None) -> frozenset[str]:
    """Read `provides`: one name, several or none."""
    names = [provides] if isinstance(provides, str) else provides or ()
    if isinstance(names, Iterable) and all(isinstance(name, str) for name in names):
        return frozenset(names)
    msg = f"provides={provides!r} is no list of names: write provides=['closure']"
    raise WrongObjectError(msg)


def build_from_node(
    source: Any,
    node: Node,
    provides: frozenset[str],
    *,
    whole: nn.Module | None = None,
) -> Optimizer:
    """Build from a node that was read; see `build_optimizer`."""
    # These import torch, and `--cfg job` must not pay for it.
    from optim_hydra.parameters import read_parameters  # noqa: PLC0415
    from optim_hydra.prepared import prepare  # noqa: PLC0415

    if whole is not None and not hasattr(whole, "named_parameters"):
        msg = f"whole is of type {type(whole).__name__}, not the complete module"
        raise WrongObjectError(msg)
    problems = Problems(node.at)
    with hiding(node.references), _no_collection():
        parameters = read_parameters(source)
        prepared = prepare(parameters, node, provides, problems, whole=whole)
        if prepared is None or problems.found:
            raise problems.error()
        return prepared.finish(prepared.construct())


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector, which would scan a large model again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
