"""Find the blocks that a model repeats, and what stands before and after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn
from torch.nn.utils.parametrize import ParametrizationList

__all__ = [
    "CLIP_FLATTENED",
    "FLATTENED",
    "Structure",
    "is_flattened",
    "is_single",
    "structure_of",
]


FLATTENED = "FullyShardedDataParallel (FSDP1) leaves pieces of flattened parameters: "
CLIP_FLATTENED = (
    f"{FLATTENED}each process would clip by its own norm; set clip_grad=null and call"
    " the model's clip_grad_norm_, or shard by fully_shard (FSDP2)"
)


def is_flattened(roots: Iterable[tuple[str, nn.Module]]) -> bool:
    """Whether FSDP1 has taken the shapes of parameters away."""
    return any(
        type(module).__name__ == "FullyShardedDataParallel"
        for module in _all_modules(root for _, root in roots)
    )


def _all_modules(roots: Iterable[nn.Module]) -> Iterable[nn.Module]:
    """Yield each module once, in no order; `Module.modules` takes its time."""
    stack, seen = list(roots), set()
    while stack:
        module = stack.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            stack.extend(_children(module))


def _children(module: nn.Module) -> list[nn.Module]:
    return [child for child in module._modules.values() if child is not None]


@dataclass(frozen=True)
class Structure:
    """Modules by their place: `depth` counts blocks from 1; 0 is before the first."""

    depth: dict[int, int]
    """`id` of each module -> number of the block it lies in, or of the last before."""
    in_block: frozenset[int]
    """`id`s of the modules that lie in a block."""
    num_blocks: int
    lists: tuple[str, ...]
    """Names of the containers that hold the blocks."""


def structure_of(modules: Iterable[tuple[str, nn.Module]]) -> Structure:
    """Read the structure of one model, or of its parts in their order.

    Blocks are the children of the outermost `nn.ModuleList`s, and those children of an
    `nn.Sequential` whose class is repeated. Lists of single layers (heads, experts)
    count only where no list has larger blocks.
    """
    roots = list(modules)
    repeated = _repeated(root for _, root in roots)
    found = [c for prefix, root in roots for c in _containers(root, prefix, repeated)]
    large = [c for c in found if any(_is_large(block) for block in c.blocks)]
    chosen = {id(c.module): c for c in large or found}
    depth: dict[int, int] = {}
    in_block: set[int] = set()
    count = 0
    for _, root in roots:
        # Depth first, so that a module takes the number of the last block before it.
        stack: list[tuple[nn.Module, bool]] = [(root, False)]
        blocks: set[int] = set()
        while stack:
            module, inside = stack.pop()
            if id(module) in depth:
                continue
            if id(module) in blocks:
                count += 1
                inside = True
            depth[id(module)] = count
            if inside:
                in_block.add(id(module))
            elif id(module) in chosen:
                blocks.update(map(id, chosen[id(module)].blocks))
            stack += [(child, inside) for child in reversed(_children(module))]
    return Structure(
        depth, frozenset(in_block), count, tuple(c.name for c in chosen.values())
    )


@dataclass(frozen=True)
class _Container:
    name: str
    module: nn.Module
    blocks: tuple[nn.Module, ...]


def _repeated(roots: Iterable[nn.Module]) -> set[type]:
    """Return the classes that stand more than once in `nn.Sequential`s."""
    counts = Counter(
        _own_class(child)
        for module in _all_modules(roots)
        if isinstance(module, nn.Sequential)
        for child in module.children()
        if _is_large(child)
    )
    return {cls for cls, number in counts.items() if number > 1}


def _containers(root: nn.Module, prefix: str, repeated: set[type]) -> list[_Container]:
    """List the outermost containers of blocks, in the order of the model."""
    found: list[_Container] = []
    stack = [(prefix, root)]
    seen: set[int] = set()
    while stack:
        name, module = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        blocks = _blocks_of(module, repeated)
        if blocks:
            found.append(_Container(name.rstrip("."), module, blocks))
            continue
        children = reversed(list(module.named_children()))
        stack += [(f"{name}{child_name}.", child) for child_name, child in children]
    return found


def is_single(module: nn.Module) -> bool:
    """Whether a module is one layer, without others in it."""
    return not (set(module._modules.keys()) - {"parametrizations"})


def _blocks_of(module: nn.Module, repeated: set[type]) -> tuple[nn.Module, ...]:
    if isinstance(module, ParametrizationList) or not isinstance(
        module, (nn.ModuleList, nn.Sequential)
    ):
        return ()
    children = [c for c in module.children() if next(c.parameters(), None) is not None]
    if isinstance(module, nn.ModuleList):
        return tuple(children)
    return tuple(child for child in children if _own_class(child) in repeated)


def _own_class(module: nn.Module) -> type:
    """Return the class of a module, seen through the one that FSDP2 puts over it."""
    cls = type(module)
    is_sharded = any(base.__name__ == "FSDPModule" for base in cls.__bases__)
    return cls.__bases__[-1] if is_sharded else cls


def _is_large(module: nn.Module) -> bool:
    return not is_single(module)
