"""Convert what a program of another library is set to: flags, arguments, flat files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from optim_hydra.conversion import convert_items
from optim_hydra.dialects import DIALECTS
from optim_hydra.foreign_nodes import defaults_beside
from optim_hydra.migrating.edits import value_text
from optim_hydra.migrating.flag_names import BETAS, common_keys, setting_keys
from optim_hydra.rewriting import SAME, Outcome, nested
from optim_hydra.tree import NODE_NAME

__all__ = ["convert_settings", "described", "settings_among"]

_IN_ONE_PLACE = ("transformers", "torchtitan")  # others spread them over sections
_ENOUGH = 2  # one key alone may be anybody's


def convert_settings(
    items: Mapping[str, Any], source: str, kept: str = "", *, whole: bool = False
) -> dict[str, Outcome]:
    """Convert all settings of one program; a beta that nobody sets is at its default.

    Args:
        items: By key.
        source: One of `dialects.SOURCES` with settings of its own.
        kept: A text in which others of its settings may stand.
        whole: Whether these are all.

    """
    given = dict(items)
    *betas, first, second = BETAS.get(source, ("", "", 0.0, 0.0))
    lacking = [key for key in betas if key not in items]
    if len(lacking) == 1 and not re.search(lacking[0].replace("_", "[-_]"), kept):
        given[lacking[0]] = first if lacking[0] == betas[0] else second
    outcomes = convert_items(given, source, whole=whole)
    if given.keys() - items.keys() and (new := outcomes[lacking[0]].new):
        (held,) = (key for key in betas if key in items)
        outcomes[held] = Outcome(new)
    return outcomes


def settings_among(
    items: Mapping[str, Any], source: str, enough: int = _ENOUGH
) -> dict[str, Any]:
    """Return the items of a mapping that set an optimizer, if it has enough of them."""
    keys = setting_keys(source)
    if len(keys & items.keys()) < enough:
        return {}
    common = common_keys(source)
    return {k: value for k, value in items.items() if k in keys or k in common}


def described(items: Mapping[str, Any], source: str) -> str:
    """Say what settings are as a node, and what of them has no equal."""
    whole = source in _IN_ONE_PLACE
    given = {**defaults_beside(DIALECTS[source], items), **items} if whole else items
    outcomes = convert_settings(given, source, whole=whole)
    node: dict[str, Any] = {}
    asked = []
    for key, value in given.items():
        done = outcomes.get(key, Outcome(((key, SAME),)))
        if done.undecided:
            asked.append(f"{key}: {done.undecided}")
        node.update({k: value if v is SAME else v for k, v in done.new})
    text = value_text(nested(node))
    what = f"{', '.join(items)} are settings of {source}, in no optimizer node: write"
    return "; ".join([f"{what} {NODE_NAME}: {text}", *asked])
