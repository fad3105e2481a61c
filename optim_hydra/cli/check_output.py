"""Show what `check` has found, as text for a terminal or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from optim_hydra.cli.check import Checked, CheckedNode
from optim_hydra.cli.foreign_nodes import ForeignNode
from optim_hydra.cli.rates import Curve, merged
from optim_hydra.state_memory import StateMemory

__all__ = ["bytes_text", "json_text", "print_checked", "rate_text"]

_WORDS = {"start": "", "warmup": " (warmed up)", "half": " (50 %)", "end": " (100 %)"}
RULE = (
    "FSDP2 gives each rank ceil(rows / ranks) rows of each tensor; rank 0 has the most"
)


def json_text(checked: Checked) -> str:
    """Return everything as one JSON document."""
    nodes = [_node_data(node, checked.world_size) for node in checked.nodes]
    others = {at: asdict(other) for at, other in checked.others.items()}
    data = {
        "nodes": nodes,
        "others": others,
        "warnings": checked.warnings,
        "problems": [{"what": p.what, "key": p.key} for p in checked.problems],
    }
    return json.dumps(data, indent=2)


def _node_data(node: CheckedNode, world_size: int) -> dict[str, Any]:
    memory = node.memory
    return {
        "key": node.key,
        "classes": node.classes,
        "needs": node.needs,
        "remarks": node.remarks,
        "model": node.model or None,
        "groups": node.report.rows if node.report else None,
        "memory": memory
        and {
            "world_size": world_size,
            "parameters": memory.num_parameters,
            "state_bytes": memory.num_bytes,
            "bytes_per_parameter": memory.per_parameter,
            "reason": memory.reason or None,
        },
        "rates": [
            {
                "group": curve.label,
                "schedule": curve.schedule.described(),
                "at": {
                    name: {"step": step, "lr": curve.at(step)}
                    for name, step in curve.marks().items()
                },
            }
            for curve in node.curves
        ],
        "notes": node.notes,
    }


def print_checked(checked: Checked, console: Console) -> None:
    """Print it node by node."""
    wrong = {p.key for p in checked.problems}
    for node in checked.nodes:
        is_wrong = any(key.startswith(node.key) for key in wrong)
        console.print(Text(node.key or "the config", style="bold"), end="")
        console.print(": has problems, see below" if is_wrong else ": fits together")
        for text in (*node.classes, *node.needs, *node.remarks):
            console.print(Text(f"  {text}"), soft_wrap=True)
        if node.report is not None:
            text = f"  built for {node.model}, on the meta device"
            console.print(Text(text), soft_wrap=True)
            console.print(node.report)
        if node.memory is not None:
            text = _memory_text(node.memory, checked.world_size)
            console.print(Text(f"  {text}"), soft_wrap=True)
        for curve in merged(node.curves):
            console.print(Text(f"  {_rates_text(curve)}"), soft_wrap=True)
        for note in node.notes:
            console.print(Text(f"  rates are not known: {note}"), soft_wrap=True)
    for at, other in checked.others.items():
        console.print(Text(at, style="bold"), end="")
        for text in _other_texts(other):
            console.print(Text(text), soft_wrap=True)
    for warning in checked.warnings:
        console.print(Text(f"warning: {warning}"), soft_wrap=True)


def _memory_text(memory: StateMemory, world_size: int) -> str:
    whose = f"rank 0 of {world_size}: " if world_size > 1 else ""
    numbers = f"{memory.num_parameters:,} parameters"
    if memory.num_bytes is None:
        return f"{whose}state of {numbers} is not known: {memory.reason}"
    each = memory.per_parameter or 0.0
    text = f"{whose}state of {numbers}: {bytes_text(memory.num_bytes)},"
    text += f" {each:.4g} bytes each"
    return f"{text} ({RULE})" if world_size > 1 else text


def bytes_text(number: int) -> str:
    """Return a number of bytes, also in the unit that suits it.

    Example:
        >>> bytes_text(70712), bytes_text(3)
        ('69.1 KiB (70,712 bytes)', '3 bytes')

    """
    power = min(int(math.log2(number) // 10), 5) if number else 0
    if not power:
        return f"{number} bytes"
    unit = ("KiB", "MiB", "GiB", "TiB", "PiB")[power - 1]
    return f"{number / 1024**power:.1f} {unit} ({number:,} bytes)"


def rate_text(lr: float) -> str:
    """Return a rate in few digits."""
    return f"{lr:.4g}"


def _rates_text(curve: Curve) -> str:
    said = {
        step: f"{rate_text(curve.at(step))} at step {step}{_WORDS[name]}"
        for name, step in reversed(curve.marks().items())
    }
    texts = [said[step] for step in sorted(said)]
    return f"rate of {curve.label}, {curve.schedule.name}: {', '.join(texts)}"


def _other_texts(other: ForeignNode) -> Iterator[str]:
    yield f": a {other.target}, which others build; of its keys"
    same = [m.key for m in other.keys if m.ours == m.key]
    if same:
        yield f"  these are ours too: {', '.join(same)}"
    for meaning in other.keys:
        if meaning.ours and meaning.ours != meaning.key:
            yield f"  {meaning.key} is our {meaning.ours}"
        elif not meaning.ours:
            yield f"  {meaning.advice}"
    for problem in other.refused:
        yield f"  as a node of ours it would be refused: {problem}"
