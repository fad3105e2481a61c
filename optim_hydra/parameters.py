"""Read modules, parameters or group dicts into named, trainable parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from optim_hydra.errors import WrongObjectError
from optim_hydra.survey import Survey, survey

__all__ = ["Parameters", "Roots", "read_each", "read_parameters"]

Named = tuple[str, nn.Parameter | Tensor]
Roots = tuple[tuple[str, nn.Module], ...]


@dataclass(frozen=True)
class Parameters:
    """Trainable parameters in groups, each with the values of its own."""

    groups: list[dict[str, Any]]
    """`params` holds (name, parameter) pairs, or bare ones where no name is known."""
    num_frozen: int
    source: str
    found: Survey | None = None
    """Every parameter of the modules with all of its names; None without modules."""
    roots: Roots = ()
    """The modules, each with the prefix of its names."""

    def for_optimizer(self) -> list[Any]:
        """Return what the optimizer's first argument takes."""
        if len(self.groups) == 1 and not self.are_grouped:
            return list(self.groups[0]["params"])
        return self.groups

    def named(self) -> Iterable[Named]:
        """Yield every parameter with its name, a position where it has none."""
        for group in self.groups:
            for index, item in enumerate(group["params"]):
                yield item if isinstance(item, tuple) else (f"parameter {index}", item)

    @property
    def are_named(self) -> bool:
        """Whether every parameter has a name."""
        items = (item for group in self.groups for item in group["params"])
        return all(isinstance(item, tuple) for item in items)

    @property
    def are_grouped(self) -> bool:
        """Whether the program has given groups with values of their own."""
        return any(group.keys() != {"params"} for group in self.groups)

    def has_sparse(self, to_freeze: Iterable[Tensor]) -> bool:
        """Whether a module makes sparse gradients for what stays trainable."""
        frozen = set(map(id, to_freeze))
        return any(
            isinstance(module, (nn.Embedding, nn.EmbeddingBag))
            and module.sparse
            and module.weight.requires_grad
            and id(module.weight) not in frozen
            for _, root in self.roots
            for module in root.modules()
        )


def read_parameters(source: object) -> Parameters:
    """Read what `build_optimizer` was given; frozen ones are left out.

    A tied parameter is held once. Nothing is changed.

    Raises:
        WrongObjectError: The source is neither a module nor holds parameters.

    """
    roots = _roots(source)
    if roots is not None:
        return _of_modules(source, roots)
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
    kept_items = _trainable(items)
    groups = [{"params": kept_items}] if kept_items else []
    return Parameters(groups, len(items) - len(kept_items), "the parameters given")


def read_each(modules: Sequence[nn.Module]) -> dict[int, Parameters]:
    """Read several parts of a model, each by itself, under names that differ.

    A parameter that is tied over two parts belongs to the first; a part that has
    nothing else is left out.
    """
    roots = _roots(modules) or ()
    named = f"one of the {len(roots)} parts"
    seen: set[int] = set()
    read = {}
    for index, root in enumerate(roots):
        found = survey((root,))
        num_found = len(found.entries)
        found.entries = [e for e in found.entries if id(e.parameter) not in seen]
        seen.update(id(entry.parameter) for entry in found.entries)
        if found.entries or not num_found:
            read[index] = _of_survey(named, (root,), found)
    return read


def _roots(source: object) -> Roots | None:
    """Return the modules of a source with their prefixes; None where it has none."""
    if isinstance(source, nn.Module):
        return (("", source),)
    if isinstance(source, Mapping) and _are_modules(source.values()):
        return tuple((f"{name}.", module) for name, module in source.items())
    if isinstance(source, Sequence) and _are_modules(source):
        return _numbered(source) if _share_names(source) else _bare(source)
    return None


def _are_modules(values: Collection[Any]) -> bool:
    return bool(values) and all(isinstance(value, nn.Module) for value in values)


def _bare(modules: Sequence[nn.Module]) -> Roots:
    return tuple(("", module) for module in modules)


def _numbered(modules: Sequence[nn.Module]) -> Roots:
    return tuple((f"{index}.", module) for index, module in enumerate(modules))


def _share_names(modules: Sequence[nn.Module]) -> bool:
    """Whether two parts have a parameter of one name; pipeline stages have not."""
    names = [e.name for module in modules for e in survey((("", module),)).entries]
    return len(set(names)) < len(names)


def _of_modules(source: object, roots: Roots) -> Parameters:
    named = f"the module {type(source).__name__}"
    if not isinstance(source, nn.Module):
        named = f"the {len(roots)} modules"
    return _of_survey(named, roots, survey(roots))


def _of_survey(named: str, roots: Roots, found: Survey) -> Parameters:
    kept = [(e.name, e.parameter) for e in found.entries if e.parameter.requires_grad]
    return Parameters(
        [{"params": kept}] if kept else [],
        len(found.entries) - len(kept),
        named,
        found,
        roots,
    )


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
        return [
            (entry.name, entry.parameter) for entry in survey((("", params),)).entries
        ]
    if params is None or isinstance(params, Tensor):
        return [] if params is None else [params]
    if not isinstance(params, Iterable) or isinstance(params, (str, Mapping)):
        msg = f"`params` of a group is of type {type(params).__name__}: give parameters"
        raise WrongObjectError(msg)
    return list(params)


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
