"""Tell what a parameter is for, from its module's type, its shape and its place."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from torch import nn

from optim_hydra.structure import Structure, is_single
from optim_hydra.survey import Alias, Entry

__all__ = ["roles_of"]

_BIAS = re.compile(r"(?:^|_)bias(?:_|$)")
# A table of biases, or the gain of a weight norm (`original0`), is no weight.
_NO_WEIGHT = re.compile(r"(?:^|_)bias(?:_|$)|_original0$")
_MATRIX = 2
_NORMS = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)


def roles_of(entries: list[Entry], structure: Structure) -> dict[int, frozenset[str]]:
    """Return the roles of each parameter, by its `id`.

    `bias` is one-dimensional, called a bias by its module or beside a matrix in it;
    `norm` and `embedding` follow from the module's class; `head` is a linear layer
    after the last block (without blocks: the last one), or one outside of them that
    has the shape of an embedding, each with its bias; `hidden` is every other weight of
    two or more dimensions that a single layer owns or that lies in a block.
    """
    embeddings = {
        tuple(entry.parameter.shape)
        for entry in entries
        if any(map(_is_embedding, map(type, _owners(entry))))
    }
    heads = _heads(entries, structure, embeddings)
    roles: dict[int, frozenset[str]] = {}
    known: dict[Any, frozenset[str]] = {}
    owner: nn.Module | None = None
    dimensions: tuple[int | None, ...] = ()
    for entry in entries:
        if entry.owner is not owner:
            owner = entry.owner
            tensors = owner._parameters.values()
            dimensions = tuple([None if p is None else p.ndim for p in tensors])
        # Layers of one make, in places of one kind, have the same roles.
        key = (
            type(owner),
            entry.local,
            entry.parameter.ndim,
            dimensions,
            id(owner) in heads,
            id(owner) in structure.in_block,
        )
        found = None if entry.others or owner._modules else known.get(key)
        if found is None:
            found = known[key] = frozenset(_roles_of(entry, structure, heads))
        roles[id(entry.parameter)] = found
    return roles


def _owners(entry: Entry) -> list[nn.Module]:
    return [entry.owner, *(alias.owner for alias in entry.others)]


def _roles_of(entry: Entry, structure: Structure, heads: set[int]) -> Iterable[str]:
    ndim = entry.parameter.ndim
    owners = _owners(entry)
    is_head = any(id(owner) in heads for owner in owners)
    if ndim <= 1:
        yield "1d"
        if is_head:
            yield "head"  # its bias
    if any(_is_norm(owner, ndim) for owner in owners):
        yield "norm"
        if any(_BIAS.search(alias.local) for alias in entry.aliases):
            yield "bias"
        return
    if ndim == 1 and any(_is_bias(alias) for alias in entry.aliases):
        yield "bias"
    if ndim < _MATRIX:
        return
    if any(_is_embedding(type(owner)) for owner in owners):
        yield "embedding"
    elif is_head:
        yield "head"
    elif not any(_NO_WEIGHT.search(alias.local) for alias in entry.aliases) and any(
        id(owner) in structure.in_block
        or is_single(owner)
        or isinstance(owner, nn.MultiheadAttention)
        for owner in owners
    ):
        yield "hidden"


def _heads(
    entries: list[Entry], structure: Structure, embeddings: set[tuple[int, ...]]
) -> set[int]:
    """Return the `id`s of the layers that are heads."""
    linear = [
        (tuple(entry.parameter.shape), owner)
        for entry in entries
        if entry.parameter.ndim == _MATRIX
        for owner in _owners(entry)
        if _is_linear(type(owner)) and is_single(owner)
    ]
    depth, last = structure.depth, structure.num_blocks
    heads = {
        id(owner)
        for shape, owner in linear
        if id(owner) not in structure.in_block
        and (
            (shape in embeddings and shape[0] != shape[1])
            or (last and depth[id(owner)] == last)
        )
    }
    if not last and linear:
        heads.add(id(linear[-1][1]))
    return heads


@functools.lru_cache(maxsize=4096)
def _words(cls: Any) -> str:
    return " ".join(base.__name__.lower() for base in cls.__mro__)


def _is_norm(owner: nn.Module, ndim: int) -> bool:
    if isinstance(owner, _NORMS):
        return True
    cls: Any = type(owner)
    return ndim <= 1 and "norm" in _words(cls) and _has_vectors_only(owner)


def _has_vectors_only(owner: nn.Module) -> bool:
    tensors = [*owner._parameters.values()]
    if "parametrizations" in owner._modules:
        tensors += owner._modules["parametrizations"].parameters()  # type: ignore[union-attr]
    return all(p is None or p.ndim <= 1 for p in tensors)


def _is_embedding(cls: Any) -> bool:
    return "embedding" in _words(cls)


def _is_linear(cls: Any) -> bool:
    return "linear" in _words(cls)


def _is_bias(alias: Alias) -> bool:
    if _BIAS.search(alias.local):
        return True
    return is_single(alias.owner) and not _has_vectors_only(alias.owner)
