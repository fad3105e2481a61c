"""Say in a line what an optimizer node of a job was resolved to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from optim_hydra.journal import JOURNAL
from optim_hydra.node import read_node
from optim_hydra.tree import is_optimizer_node, mappings

__all__ = ["config_hash", "node_text", "resolved_nodes"]

_SHOWN = ("lr", "weight_decay")


def resolved_nodes(config: DictConfig) -> dict[str, Any]:
    """Return full key -> classes, arguments and groups of each optimizer node.

    Of a node that nothing was built from, its config says what there is to say.
    """
    found: dict[str, Any] = dict(JOURNAL.described)
    for at, mapping in mappings(config):
        if at not in found and is_optimizer_node(mapping, at):
            items = read_node(mapping).items
            name = f"{items.get('optimizer_impl')}.{items.get('optimizer')}"
            arguments = {key: items[key] for key in _SHOWN if key in items}
            arguments |= items.get("override_optimizer_config") or {}
            found[at] = {"classes": [{"class": name, "arguments": arguments}]}
    return found


def node_text(node: Mapping[str, Any]) -> str:
    """Return a text such as `AdamW(lr=0.001, weight_decay=0.01 decoupled)`."""
    texts = []
    for each in node.get("classes", []):
        arguments = {key: _text(value) for key, value in each["arguments"].items()}
        meaning = each.get("weight_decay_is")
        if meaning and "weight_decay" in arguments:
            arguments["weight_decay"] += f" {meaning}"
        listed = ", ".join(f"{key}={text}" for key, text in arguments.items())
        texts.append(f"{each['class'].rpartition('.')[2]}({listed})")
    rows = node.get("groups", [])
    groups = f" in {len(rows)} groups" if len(rows) > 1 else ""
    return " + ".join(texts) + groups


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def config_hash(config: DictConfig) -> str:
    """Return a text that is equal for configs whose resolved values are equal.

    What an optimizer that was built did not take does not count: with `strict: false`,
    jobs that differ in it alone are equal.
    """
    values: Any
    try:
        values = OmegaConf.to_container(config, resolve=True)
    except Exception:  # noqa: BLE001 - resolvers are foreign code
        values = OmegaConf.to_container(config)
    for at, node in JOURNAL.described.items():
        for key in node["unused"]:
            _leave_out(values, [*at.split("."), *key.split(".", 1)])
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _leave_out(values: Any, path: list[str]) -> None:
    """Take out the value at a path, if it is there."""
    *above, last = path
    for key in above:
        values = values.get(key) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop(last, None)
