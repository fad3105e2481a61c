"""Find the layer of each parameter, for learning rates that fall layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

from optim_hydra.errors import Problems
from optim_hydra.name_index import NameIndex
from optim_hydra.schema_layers import LayerDecayConfig
from optim_hydra.structure import Structure
from optim_hydra.survey import Entry
from optim_hydra.unmatched import names_like

__all__ = ["layer_scales"]

_KEY = "layer_decay"


def layer_scales(
    entries: Sequence[Entry],
    structure: Structure,
    config: LayerDecayConfig,
    problems: Problems,
) -> dict[int, float]:
    """Return what the lr of each parameter is multiplied by, by its `id`.

    `factor ** (number of layers after its own)`, as in BEiT (arXiv:2106.08254). A
    parameter that no listed layer holds keeps its lr.
    """
    if config.factor is None:
        return {}
    if config.layers:
        layer_of, last = _listed(entries, config.layers, problems), len(config.layers)
        last -= 1
    else:
        layer_of, last = _found(entries, structure, problems)
    factor = config.factor
    return {key: factor ** (last - layer) for key, layer in layer_of.items()}


def _listed(
    entries: Sequence[Entry], layers: Sequence[str], problems: Problems
) -> dict[int, int]:
    named = [(alias.name, e.parameter) for e in entries for alias in e.aliases]
    names = [name for name, _ in named]
    index = NameIndex(names, len(layers))
    layer_of: dict[int, int] = {}
    for number, layer in enumerate(layers):
        hits = {id(named[position][1]) for position in index.matching(layer)}
        own = hits - layer_of.keys()
        layer_of |= dict.fromkeys(own, number)
        if not hits:
            what = f"the layer {layer!r} matches no parameter{names_like(layer, names)}"
            problems.add(what, f"{_KEY}.layers[{number}]")
        elif not own:
            what = f"what the layer {layer!r} matches is in a layer before it"
            problems.add(what, f"{_KEY}.layers[{number}]")
    return layer_of


def _found(
    entries: Sequence[Entry], structure: Structure, problems: Problems
) -> tuple[dict[int, int], int]:
    """Count the layers: what comes before the blocks, the blocks, what comes after."""
    parents = {name.rpartition(".")[0] for name in structure.lists}
    what = ""
    if not structure.num_blocks:
        what = "the model has no module lists to find its layers in"
    elif len(parents) > 1:
        lists = ", ".join(structure.lists)
        what = f"the blocks stand in several places ({lists})"
    if what:
        problems.add(f"{what}: list them, the first one first", f"{_KEY}.layers")
        return {}, 0
    depth, last = structure.depth, structure.num_blocks
    layer_of = {}
    for entry in entries:
        owners = [alias.owner for alias in entry.aliases]
        # A weight tied to the first layer is part of it.
        layer_of[id(entry.parameter)] = min(
            depth[id(owner)]
            + (depth[id(owner)] == last and not _inside(owner, structure))
            for owner in owners
        )
    return layer_of, last + 1


def _inside(owner: object, structure: Structure) -> bool:
    return id(owner) in structure.in_block
