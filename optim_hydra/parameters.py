"""Read a module, parameters or group dicts into named, trainable parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from optim_hydra.errors import WrongObjectError

__all__ = ["Parameters", "read_parameters"]

Named = tuple[str, nn.Parameter | Tensor]
# Segments that wrappers put into names: FSDP1, torch.compile, checkpointing.
_WRAPPERS = re.compile(
    r"(?:(?<=\.)|^)(?:_fsdp_wrapped_module|_orig_mod|_checkpoint_wrapped_module)\."
)
_DATA_PARALLEL = (nn.parallel.DistributedDataParallel, nn.DataParallel)


@dataclass(frozen=True)
class Parameters:
    """Trainable parameters in groups, each with the values of its own."""

    groups: list[dict[str, Any]]
    """`params` holds (name, parameter) pairs, or bare ones where no name is known."""
    num_frozen: int
    source: str
    has_sparse: bool = False
    """Whether a module in the source makes sparse gradients."""

    def named(self) -> Iterable[Named]:
        """Yield every parameter with its name, a position where it has none."""
        for group in self.groups:
            for index, item in enumerate(group["params"]):
                yield item if isinstance(item, tuple) else (f"parameter {index}", item)

    def for_optimizer(self) -> list[Any]:
        """Return what the optimizer's first argument takes."""
        if len(self.groups) == 1 and self.groups[0].keys() == {"params"}:
            return list(self.groups[0]["params"])
        return self.groups


def canonical_names(module: nn.Module) -> list[Named]:
    """Return the parameters under names without the segments that wrappers add."""
    prefix = "module." if isinstance(_unwrapped(module), _DATA_PARALLEL) else ""
    named: list[Named] = list(module.named_parameters())
    names = [_WRAPPERS.sub("", name).removeprefix(prefix) for name, _ in named]
    if len(set(names)) < len(names):
        return named  # a child of the user's own is called like a wrapper's segment
    return [
        (name, parameter) for name, (_, parameter) in zip(names, named, strict=True)
    ]


def _unwrapped(module: nn.Module) -> nn.Module:
    inner = getattr(module, "_orig_mod", module)  # torch.compile
    return inner if isinstance(inner, nn.Module) else module


def read_parameters(source: object) -> Parameters:
    """Read what `build_optimizer` was given; frozen ones are left out.

    A tied parameter is held once. Nothing is changed.

    Raises:
        WrongObjectError: The source is neither a module nor holds parameters.

    """
    if isinstance(source, nn.Module):
        name = f"the module {type(source).__name__}"
        has_sparse = any(
            isinstance(m, (nn.Embedding, nn.EmbeddingBag))
            and m.sparse
            and m.weight.requires_grad
            for m in source.modules()
        )
        return _one_group(list(canonical_names(source)), name, has_sparse=has_sparse)
    unordered = isinstance(source, (set, frozenset))
    if unordered or isinstance(source, (Tensor, Mapping, str)):
        raise _wrong_source(source)
    if not isinstance(source, Iterable):
        raise _wrong_source(source)
    items = list(source)
    if items and all(isinstance(item, Mapping) for item in items):
        groups = [_with_names(group) for group in items]
        kept = [{**g, "params": _trainable(g["params"])} for g in groups]
        frozen = sum(len(g["params"]) for g in groups) - sum(
            len(g["params"]) for g in kept
        )
        return Parameters(
            [g for g in kept if g["params"]], frozen, "the parameter groups"
        )
    return _one_group(items, "the parameters given")


def _wrong_source(source: object) -> WrongObjectError:
    return WrongObjectError(
        f"the first argument is of type {type(source).__name__}: give a torch module,"
        " parameters or parameter groups: build_optimizer(module, config)"
    )


def _with_names(group: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a group, its `param_names` put beside the parameters that they name."""
    values = dict(group)
    params, names = _as_list(values.get("params")), values.pop("param_names", None)
    if names is not None and not any(isinstance(item, tuple) for item in params):
        if len(names) != len(params):
            msg = f"a group has {len(names)} param_names for {len(params)} parameters:"
            msg += " give one for each, or none"
            raise WrongObjectError(msg)
        params = list(zip(names, params, strict=True))
    return {**values, "params": params}


def _as_list(params: Any) -> list[Any]:
    if isinstance(params, nn.Module):
        return list(canonical_names(params))
    if params is None or isinstance(params, Tensor):
        return [] if params is None else [params]
    if not isinstance(params, Iterable) or isinstance(params, (str, Mapping)):
        msg = f"`params` of a group is of type {type(params).__name__}: give parameters"
        raise WrongObjectError(msg)
    return list(params)


def _one_group(
    items: list[Any], source: str, *, has_sparse: bool = False
) -> Parameters:
    kept = _trainable(items)
    groups = [{"params": kept}] if kept else []
    return Parameters(groups, len(items) - len(kept), source, has_sparse)


def _trainable(items: list[Any]) -> list[Any]:
    """Drop frozen parameters and repeated ones."""
    seen: set[int] = set()
    kept = []
    for item in items:
        parameter = item[1] if isinstance(item, tuple) and len(item) == 2 else item  # noqa: PLR2004
        if not isinstance(parameter, Tensor):
            msg = f"among the parameters is a value of type {type(parameter).__name__}:"
            msg += " give the module, or module.parameters()"
            raise WrongObjectError(msg)
        if parameter.requires_grad and id(parameter) not in seen:
            seen.add(id(parameter))
            kept.append(item)
    return kept
