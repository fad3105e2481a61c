"""Names that a pattern matches are found as one comparison each would find them."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optim_hydra.name_index import NameIndex

NAMES = st.lists(st.text("ab.1", max_size=6), max_size=8)
GLOBS = st.text("ab.1*?[]!", max_size=6)


@given(names=NAMES, glob=GLOBS, num_patterns=st.sampled_from([1, 1_000]))
def test_globs_find_what_fnmatch_finds(
    names: list[str], glob: str, num_patterns: int
) -> None:
    found = NameIndex(names, num_patterns).matching(glob)
    expected = [i for i, name in enumerate(names) if fnmatch.fnmatchcase(name, glob)]
    assert sorted(found) == expected


@given(names=NAMES, glob=st.none() | GLOBS)
def test_a_regular_expression_narrows_what_the_glob_finds(
    names: list[str], glob: str | None
) -> None:
    found = NameIndex(names, 1).matching(glob, r"a\.|b$")
    kept = NameIndex(names, 1).matching(glob)
    assert found == [i for i in kept if re.search(r"a\.|b$", names[i])]


@pytest.mark.parametrize("num_patterns", [1, 1_000])
def test_the_two_ends_of_a_glob_do_not_share_letters(num_patterns: int) -> None:
    index = NameIndex(["aba", "abba", "ab1ba"], num_patterns)
    assert sorted(index.matching("ab*ba")) == [1, 2]
