"""What the README shows of parameter groups sorts real models as it says."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn

from case_helpers import Compose
from group_models import gpt, lora
from optim_hydra import ParamGroupConfig, assignment_report, build_optimizer
from optim_hydra.schema_groups import MATCHERS

README = (Path(__file__).parents[1] / "README.md").read_text()
SECTION = README.partition("\n## Parameter groups\n")[2].partition("\n## ")[0]
FILES = dict(re.findall(r"(?ms)^```yaml\n# conf/(optim/\w+\.yaml)\n(.*?)^```", SECTION))


def test_the_tables_list_every_field_of_a_rule() -> None:
    rows = re.findall(r"(?m)^\| (`.+?) \|", SECTION)
    fields = [field for row in rows for field in re.findall(r"`(\w+)`", row)]
    expected = [field.name for field in dataclasses.fields(ParamGroupConfig)]
    assert tuple(fields[: len(MATCHERS)]) == MATCHERS
    assert sorted(fields) == sorted(expected)


@pytest.mark.parametrize(
    ("group", "model", "expected"),
    [
        (
            "my_groups",
            gpt,
            [
                # The weights of the block that is left, then its vectors and ln_f.
                ("AdamW", 1e-3, 0.1, "", 4),
                ("AdamW", 1e-3, 0.0, "no_decay", 10),
                ("AdamW", 1e-4, 0.1, "param_groups[1]", 1),
                ("AdamW", 3e-3, 0.0, "param_groups[2]", 2),
            ],
        ),
        (
            "lora_plus",
            lora,
            [
                ("AdamW", 2e-4, 0.0, "", 2),
                ("AdamW", 3.2e-3, 0.0, "param_groups[0]", 2),
            ],
        ),
        (
            "four_times_as_wide",
            gpt,
            [
                # Embeddings, biases, norms and the head.
                ("AdamW", 1e-3, 0.01, "", 21),
                ("AdamW", 2.5e-4, 0.04, "param_groups[0]", 8),
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_group_file_sorts_a_model(
    group: str,
    model: Callable[[], nn.Module],
    expected: list[tuple[str, float, float, str, int]],
    compose: Compose,
) -> None:
    cfg = compose(f"optim@actor.optim={group}", files=FILES)
    keys = ("class", "lr", "weight_decay", "rule", "tensors")
    report = assignment_report(build_optimizer(model(), cfg.actor.optim))
    rows = [tuple(row[key] for key in keys) for row in report.rows]
    assert rows == [pytest.approx(row) for row in expected]
