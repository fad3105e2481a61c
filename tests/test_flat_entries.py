"""Entries of a flat state are read alike in any order, whatever has dots."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from optim_hydra.saved_entries import read_saved

# One name begins like another, and a wrapped optimizer's keys have a dot.
NAMES = ("a", "a.b", "c.weight")
STATE = {name: {"step": 1, "inner.step": 2, "inner.exp": 3} for name in NAMES}
VALUES = {name: {"lr": 0.1, "inner.lr": 0.2} for name in NAMES}
UNKNOWN = {"x.y": {"step": 5}}
ENTRIES: list[tuple[str, Any]] = [
    *(
        (f"{kind}.{name}.{key}", value)
        for kind, of in (("state", STATE | UNKNOWN), ("param_groups", VALUES))
        for name, own in of.items()
        for key, value in own.items()
    ),
    ("param_groups.a.params", ["a"]),
    ("param_groups.a.b.param_names", ["a.b"]),
    ("optim_hydra_version", 3),
    ("lr_schedulers.a.last_epoch", 7),
    ("shared.cls.k", 4),
]


@given(st.permutations(ENTRIES))
def test_the_order_of_entries_does_not_matter(entries: list[tuple[str, Any]]) -> None:
    read = read_saved(dict(entries), NAMES)
    assert read.state == STATE | UNKNOWN
    assert read.values == VALUES | {"x.y": {}}
    assert read.shared == {"cls.k": 4}
