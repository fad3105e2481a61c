"""Own what `hydra.utils.instantiate` calls for an optimizer node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from optim_hydra.builder import build_from_node, promises
from optim_hydra.checking import read_config
from optim_hydra.errors import Problems, WrongObjectError
from optim_hydra.node import Node, read_parts

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

__all__ = ["OptimizerFactory", "build"]


def build(*args: Any, **parts: Any) -> Any:
    """Be what `_target_` of every optimizer node resolves to.

    `hydra.utils.instantiate(cfg.actor.optim, actor)` returns the optimizer, without
    a module it returns an `OptimizerFactory`.
    """
    provides = promises(parts.pop("provides", ()))
    whole = parts.pop("whole", None)
    if "params" in parts:  # the usual spelling with instantiate
        args = (*args, parts.pop("params"))
    if len(args) > 1:
        msg = f"{len(args)} objects to optimize: give one, instantiate(node, module)"
        raise WrongObjectError(msg)
    factory = OptimizerFactory(read_parts(parts))
    return factory(*args, provides=provides, whole=whole) if args else factory


class OptimizerFactory:
    """Hold a checked node until the module exists: `factory(actor)`.

    A plain class, since Hydra turns results that are dataclasses back into config.
    It pickles, and holds plain values only.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        """Check the node's own values; no class is imported yet.

        Raises:
            ConfigError: Values of the node can't be used.

        """
        if not node.target:
            problems = Problems(node.at)
            read_config(node, problems)
            problems.raise_if_any()
        self._node = node

    def __call__(
        self,
        parameters: Any,
        *,
        provides: str | Iterable[str] = (),
        whole: nn.Module | None = None,
    ) -> Optimizer:
        """Build the optimizer; see `build_optimizer`."""
        return build_from_node(parameters, self._node, promises(provides), whole=whole)

    def __repr__(self) -> str:
        """Show the class and the place in the config."""
        items = self._node.items
        path = (
            self._node.target
            or f"{items.get('optimizer_impl')}.{items.get('optimizer')}"
        )
        return f"OptimizerFactory({path} @ {self._node.at or 'no config'})"

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same node."""
        return isinstance(other, OptimizerFactory) and self._node == other._node

    __hash__ = None  # type: ignore[assignment]
