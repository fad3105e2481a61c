"""The README's tables of other libraries' keys are the library's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foreign_tables import HEADINGS, key_rows, page, without_equal
from optim_hydra.field_checks import CHECKS
from optim_hydra.foreign_keys import FOREIGN_ROWS

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_tables_are_those_that_the_script_prints() -> None:
    assert page().rstrip() in README


def test_every_key_of_every_library_is_in_a_table() -> None:
    listed = {
        (owner, key.strip("`"))
        for owner in HEADINGS
        for key in [*(row[0] for row in key_rows(owner)), *without_equal(owner)]
    }
    assert listed == {(r.owner, r.key) for r in FOREIGN_ROWS if r.owner != "others"}


@pytest.mark.parametrize("row", FOREIGN_ROWS, ids=lambda row: f"{row.owner}-{row.key}")
def test_what_is_written_instead_is_a_key_of_ours(row) -> None:
    if row.instead:
        first = re.match(r"\w+", row.instead)
        assert first
        assert first[0] in CHECKS
