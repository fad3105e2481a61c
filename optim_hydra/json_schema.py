"""Describe optimizer nodes as a JSON Schema, so that editors complete and check them.

Kinds and ranges are those of the checks in `schema`; descriptions are the texts under
the fields there.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

from optim_hydra.field_checks import CHECKS
from optim_hydra.list_checks import Items, Reals, Texts
from optim_hydra.renamed_keys import RENAMED_KEYS
from optim_hydra.schedule import SCHEDULES
from optim_hydra.schema import OptimConfig
from optim_hydra.schema_groups import MATCHERS, OWN_CHECKS, ParamGroupConfig
from optim_hydra.schema_layers import LAYER_CHECKS, LayerDecayConfig
from optim_hydra.value_checks import Choice, Count, Flag, Real, Text

__all__ = ["node_schema"]

Schema = dict[str, Any]
_Check = Callable[[Any], Any]

OPEN = {"$ref": "#/definitions/open"}
_DEFINITIONS: Schema = {
    "open": {
        "description": "Left for Hydra to fill: ??? or a reference, ${...}.",
        "type": "string",
        "pattern": r"^\?\?\?$|\$\{.*\}",
    },
}
_NUMERIC = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"


def node_schema() -> Schema:
    """Return the schema of a file in `conf/optim`."""
    properties = _properties(OptimConfig, CHECKS)
    rules = {"anyOf": [{"$ref": "#/definitions/rule"}, OPEN]}
    properties["param_groups"]["anyOf"][0]["items"] = rules
    properties["layer_decay"]["anyOf"][0] = {"$ref": "#/definitions/layer_decay"}
    properties["layer_decay"]["anyOf"].insert(1, {"type": "null"})
    properties["defaults"] = {
        "description": "Hydra's list: base_optim or another group, then _self_.",
        "type": "array",
    }
    for renamed in RENAMED_KEYS.values():
        if not renamed.is_removed:
            what = f"{renamed.old} is now {renamed.new}"
            what += f"; the old key is removed in {renamed.removed_in}"
            properties[renamed.old] = {
                "description": what,
                "deprecated": True,
                "deprecationMessage": what,
                "anyOf": [*properties[renamed.new]["anyOf"], {"type": "null"}],
            }
    rule = _object(_properties(ParamGroupConfig, {**CHECKS, **OWN_CHECKS}, null=True))
    rule["anyOf"] = [{"required": [name]} for name in MATCHERS]
    layers = _object(_properties(LayerDecayConfig, LAYER_CHECKS))
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Optimizer node of optim_hydra",
        **_object(properties),
        "definitions": {**_DEFINITIONS, "rule": rule, "layer_decay": layers},
    }


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _properties(
    cls: type, checks: dict[str, _Check], *, null: bool = False
) -> dict[str, Schema]:
    """Describe the fields of a dataclass that are a user's to set.

    Args:
        cls: The dataclass.
        checks: What checks each field.
        null: Whether every field may be null, which leaves it out.

    """
    texts = _texts(cls)
    properties = {}
    for field in dataclasses.fields(cls):
        if field.name.startswith("_"):
            continue
        kinds = [*_kinds(checks[field.name]), OPEN]
        if null and {"type": "null"} not in kinds:
            kinds.append({"type": "null"})
        if field.name == "lr_scheduler_type":
            kinds.insert(0, {"enum": sorted(SCHEDULES)})  # for completion
        properties[field.name] = {"description": texts[field.name], "anyOf": kinds}
        default = field.default
        if default is not dataclasses.MISSING and not null:
            is_pair = isinstance(default, tuple)
            properties[field.name]["default"] = list(default) if is_pair else default
    return properties


def _texts(cls: type) -> dict[str, str]:
    """Return the texts under the fields of a dataclass."""
    (definition,) = ast.parse(inspect.getsource(cls)).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    texts = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = below.value if isinstance(below, ast.Expr) else None
            text = value.value if isinstance(value, ast.Constant) else ""
            texts[field.target.id] = str(text)
    return texts


def _kinds(check: _Check) -> list[Schema]:
    """Describe what a check accepts: any of these."""
    kinds: list[Schema]
    null = [{"type": "null"}] if getattr(check, "null", False) else []
    match check:
        case Real():
            kinds = [_range(check), {"type": "string", "pattern": _NUMERIC}, *null]
        case Count():
            also = [{"const": number} for number in check.also]
            kinds = [{"type": "integer", "minimum": check.low}, *also, *null]
        case Choice():
            kinds = [{"enum": list(check.words)}, *null]
        case Text():
            kinds = [{"type": "string", "pattern": r"\S"}]
        case Flag():
            kinds = [{"type": "boolean"}]
        case Reals() | Texts() | Items():
            kinds = _kinds_of_many(check)
        case _:
            # Rules and layers are filled in by `node_schema`; a regex is text.
            names = {id(list): "array", id(dict): "object"}
            kinds = [{"type": names.get(id(check), "string")}]
    return kinds


def _kinds_of_many(check: Reals | Texts | Items) -> list[Schema]:
    """Describe lists and mappings."""
    if isinstance(check, Reals):
        each = {"anyOf": [*_kinds(check.each), OPEN]}
        return [{"type": "array", "items": each, "minItems": 2}]
    if isinstance(check, Texts):
        (item,) = _kinds(Choice(check.words) if check.words else Text())
        whole = {"type": "array", "items": item}
        return [whole, item] if check.single else [whole]
    plain = {"propertyNames": {"not": {"const": "_target_"}}}
    return [{"type": "object", **plain}, {"type": "null"}]


def _range(check: Real) -> Schema:
    kind: Schema = {"type": "number"}
    kind["exclusiveMinimum" if check.open_low else "minimum"] = check.low
    if check.high < math.inf:
        kind["exclusiveMaximum" if check.open_high else "maximum"] = check.high
    return kind
