"""Own `assignment_report`: which group has which parameters, with which values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch.optim import Optimizer

from optim_hydra.group_records import records_of
from optim_hydra.state_slots import leaves
from optim_hydra.unwrapping import unwrapped
from optim_hydra.watch import frozen_names

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["AssignmentReport", "assignment_report"]

_SHOWN = 3
_LINES = 30


@dataclass(frozen=True)
class AssignmentReport:
    """One row for each parameter group of an optimizer.

    `rows` is data; as text it is one line a group; with rich installed,
    `rich.print(report)` shows a table.
    """

    rows: list[dict[str, Any]]
    """Keys: group, class, tensors, numbers, lr, weight_decay, rule, schedule, names."""
    frozen: list[str] = field(default_factory=list)
    """Names that the modules have and do not train."""

    def __str__(self) -> str:
        """Return one line a group, for a log; of many groups the first ones."""
        lines = [_line(row) for row in self.rows[:_LINES]]
        if len(self.rows) > _LINES:
            lines.append(f"and {len(self.rows) - _LINES} more groups")
        if self.frozen:
            lines.append(f"frozen: {_examples(self.frozen)}")
        return "\n  ".join(lines)

    def __rich__(self) -> Table:
        """Return a table, for a terminal."""
        from rich.box import SIMPLE  # noqa: PLC0415 - called by rich itself
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
        for title in ("group", "class", "tensors", "numbers", "lr", "decay", "rule"):
            table.add_column(title, no_wrap=True)
        table.add_column("names", overflow="fold")
        for row in self.rows:
            *values, rule, _, names = row.values()
            short = rule.replace("param_groups", "")
            cells = (*map(_text, values), short, _examples(names, "\n"))
            # A name may have brackets in it, which rich would take for its own.
            table.add_row(*map(Text, cells))
        if self.frozen:
            table.caption = Text(f"frozen: {_examples(self.frozen)}")
        return table


def assignment_report(optimizer: Optimizer) -> AssignmentReport:
    """Report how the parameters of an optimizer, or of a container, are grouped.

    `numbers` counts the elements of all tensors of a group; `lr` is the rate that a
    schedule multiplies; `rule` says which rule of
    the node made it, nothing for the node's own group; `names` are those that
    the optimizer was given. `weight_decay` is None where the class has none.

    Raises:
        WrongObjectError: The argument is no optimizer.

    Example:
        >>> from torch import nn
        >>> from optim_hydra import build_optimizer
        >>> config = {"weight_decay": 0.1, "no_decay": ["bias"]}
        >>> print(assignment_report(build_optimizer(nn.Linear(4, 2), config)))
        group 0: AdamW, lr 0.001, weight_decay 0.1, 8 numbers in 1 tensor: weight
          group 1 (no_decay): AdamW, lr 0.001, weight_decay 0, 2 numbers in ...: bias

    """
    bare = unwrapped(optimizer)
    rows = []
    held = [
        (prefix, leaf, group, record)
        for prefix, leaf, _ in leaves(bare)
        for group, record in zip(leaf.param_groups, records_of(leaf), strict=True)
    ]
    for index, (prefix, leaf, group, record) in enumerate(held):
        params = group["params"]
        lr = group.get("initial_lr", group.get("lr"))
        rows.append(
            {
                "group": index,
                "class": type(leaf).__name__,
                "tensors": len(params),
                "numbers": sum(p.numel() for p in params),
                "lr": None if lr is None else float(lr),
                "weight_decay": group.get("weight_decay"),
                "rule": _rule(record.rules),
                "schedule": record.schedule,
                "names": [prefix + name for name in group.get("param_names", ())],
            }
        )
    return AssignmentReport(rows, sorted(frozen_names(bare)))


def _line(row: dict[str, Any]) -> str:
    rule = f" ({row['rule']})" if row["rule"] else ""
    values = [
        f"{key} {_text(row[key])}"
        for key in ("lr", "weight_decay")
        if row[key] is not None
    ]
    values += [f"{key} {value}" for key, value in row["schedule"].items()]
    start = ", ".join([f"group {row['group']}{rule}: {row['class']}", *values])
    plural = "" if row["tensors"] == 1 else "s"
    counts = f"{row['numbers']} numbers in {row['tensors']} tensor{plural}"
    names = _examples(row["names"])
    return f"{start}, {counts}" + (f": {names}" if names else "")


def _rule(places: Sequence[str]) -> str:
    """Join the places; `node` where others were merged into the node's own group."""
    if not any(places):
        return ""
    return ", ".join(place or "node" for place in places)


def _examples(names: list[str], separator: str = ", ") -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return separator.join(names[:_SHOWN]) + more


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
