"""Turn places into parameter groups: equal values merged, each class by itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor, distributed

from optim_hydra.needs import need_of
from optim_hydra.placing import Place
from optim_hydra.planning import Plan, Variant
from optim_hydra.schema_groups import SCHEDULE_KEYS
from optim_hydra.survey import Entry

if TYPE_CHECKING:
    from torch.optim import Optimizer

__all__ = ["ClassGroups", "Group", "Grouped", "make_groups"]


@dataclass
class Group:
    """Parameters with equal values."""

    values: dict[str, Any]
    """Every constructor argument that was planned for them."""
    schedule: dict[str, Any]
    """The schedule fields that their rule sets."""
    rules: list[str] = field(default_factory=list)
    """Where it is said that they are a group; an empty text for the node itself."""
    positions: list[int] = field(default_factory=list)
    """Where the parameters stand in the model, in order."""
    entries: list[Entry] = field(default_factory=list)
    """The parameters, in the order of the model."""

    def add(self, positions: list[int], entries: list[Entry]) -> None:
        """Add parameters, each by its position."""
        is_new = not self.positions
        self.positions += positions
        self.entries += entries
        if not is_new:
            order = sorted(range(len(self.positions)), key=self.positions.__getitem__)
            self.positions = [self.positions[index] for index in order]
            self.entries = [self.entries[index] for index in order]


@dataclass
class ClassGroups:
    """All groups of one class, and the arguments that its constructor is called with.

    The constructor gets what all of its groups know; the rest stands in each group.
    """

    cls: type[Optimizer]
    variants: list[Variant] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    switches: dict[str, bool] = field(default_factory=dict)
    """Flags of `implementation: fastest`."""

    def named(self) -> list[tuple[str, Tensor]]:
        """Return the named parameters of all groups."""
        return [(e.name, e.parameter) for group in self.groups for e in group.entries]

    def arguments(self) -> dict[str, Any]:
        """Return the constructor's keyword arguments: those of the first group."""
        first, *others = self.variants
        kwargs = first.arguments.kwargs
        shared = set(kwargs).intersection(*(v.arguments.kwargs for v in others))
        shared -= need_of(self.cls).group_keys.keys()
        own = {name: kwargs[name] for name in kwargs if name in shared}
        return {**own, **self.switches}


@dataclass(frozen=True)
class Grouped:
    """What becomes of all parameters of a source."""

    classes: list[ClassGroups]
    to_freeze: list[Tensor]


def make_groups(placed: list[tuple[Entry, Place]], plan: Plan) -> Grouped:
    """Group placed parameters; the node's own group comes first, then the rules."""
    by_place: dict[Place, list[int]] = defaultdict(list)
    for position, (_, place) in enumerate(placed):
        by_place[place].append(position)
    meshes = _meshes(placed)
    grouped = Grouped([], [])
    classes: dict[type, ClassGroups] = {}
    seen: set[int] = set()
    known: dict[Any, Group] = {}
    for place in sorted(by_place):
        members = by_place[place]
        variant = plan.node if place.rule < 0 else plan.rules.get(place.rule)
        if variant is None:
            if "freeze" in plan.optim.param_groups[place.rule]:
                grouped.to_freeze.extend(placed[i][0].parameter for i in members)
            continue  # or a rule with a problem, which is noted
        values, label = _values(variant, place)
        schedule = _schedule_of(plan, place.rule)
        own = classes.setdefault(variant.cls, ClassGroups(variant.cls))
        if id(variant) not in seen:
            seen.add(id(variant))
            own.variants.append(variant)
        value_key = (variant.cls, _hashable(values), _hashable(schedule))
        for mesh in meshes:
            on_mesh = members
            if len(meshes) > 1:
                on_mesh = [i for i in members if mesh_of(placed[i][0]) == mesh]
            if not on_mesh:
                continue
            key = (*value_key, mesh)
            if key not in known:
                known[key] = Group(values, schedule)
                own.groups.append(known[key])
            known[key].rules += [text for text in label if text not in known[key].rules]
            known[key].add(on_mesh, [placed[i][0] for i in on_mesh])
    grouped.classes.extend(classes.values())
    return grouped


def mesh_of(entry: Entry) -> Any:
    """Return the device mesh of a sharded parameter, None of a plain one."""
    return getattr(entry.parameter, "device_mesh", None)


def _meshes(placed: list[tuple[Entry, Place]]) -> list[Any]:
    """List the meshes of the parameters.

    torch's foreach and fused steps take plain and sharded tensors, and those of
    different meshes, in different groups only.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return [None]
    return list(dict.fromkeys(mesh_of(entry) for entry, _ in placed))


def _values(variant: Variant, place: Place) -> tuple[dict[str, Any], list[str]]:
    """Apply no_decay and layer decay to a variant's arguments; say what was applied."""
    flag = need_of(variant.cls).flag
    values = {**({flag: False} if flag else {}), **variant.arguments.kwargs}
    label = [variant.at]
    if "lr" in values and place.scale != 1.0:
        values["lr"] = values["lr"] * place.scale
    exempt = place.is_exempt and not variant.decays_itself
    if exempt and values.get("weight_decay"):
        values["weight_decay"] = 0.0
        label = [*filter(None, label), "no_decay"]
    return values, label


def _schedule_of(plan: Plan, rule: int) -> dict[str, Any]:
    said = plan.optim.param_groups[rule] if rule >= 0 else {}
    return {key: said[key] for key in SCHEDULE_KEYS if key in said}


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal values of equal kinds."""
    if isinstance(value, dict):
        return tuple(sorted((k, _hashable(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    if isinstance(value, Tensor):
        return id(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)  # 0 and 0.0 are one decay
    return type(value).__name__, repr(value)
