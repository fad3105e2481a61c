"""Ask about a TOML file of torchtitan: it is no file of Hydra's."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from typing import Any

from optim_hydra.migrating.edits import Migrated
from optim_hydra.migrating.settings import described, settings_among

__all__ = ["migrate_toml"]

_HEADER = re.compile(r"^[ \t]*\[(?:optimizer|lr_scheduler)\]", re.MULTILINE)


def migrate_toml(
    text: str,
    source: str = "",
    held: Collection[int] = (),  # noqa: ARG001 - as for every kind of file
) -> Migrated:
    """Say what the optimizer and schedule of a training file are as a node.

    Args:
        text: The whole file.
        source: `torchtitan`; others have no such files.
        held: Not for these files, which have no nodes.

    """
    migrated = Migrated(text)
    header = _HEADER.search(text)
    if source != "torchtitan" or header is None:
        return migrated
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        migrated.ask(header.start(), "", f"the file is no TOML: {error}")
        return migrated
    training = _section(sections, "training")
    items = {**_section(sections, "optimizer"), **_section(sections, "lr_scheduler")}
    if "max_norm" in training:
        items["max_norm"] = training["max_norm"]
    if "steps" in training:
        items.setdefault("total_steps", training["steps"])
    found = settings_among(items, source, enough=1)
    if found:
        key = header.group().strip()
        migrated.ask(header.end() - 1, key, described(found, source))
    return migrated


def _section(sections: dict[str, Any], name: str) -> dict[str, Any]:
    held = sections.get(name)
    return held if isinstance(held, dict) else {}
