"""The README's tables of other libraries' keys, made of the package's own.

`python tests/foreign_tables.py` prints them.
"""

from __future__ import annotations

from optim_hydra.conversion_megatron import MEGATRON_DECAYS, MEGATRON_STYLES
from optim_hydra.conversion_transformers import TRAINER_CLASSES, TRAINER_SCHEDULES
from optim_hydra.foreign_key import ForeignKey
from optim_hydra.foreign_keys import FOREIGN_ROWS

HEADINGS = {
    "Megatron": "Megatron, and verl's group megatron",
    "VeOmni": "VeOmni, and verl's group veomni",
    "torchtitan": "torchtitan, and verl's group torchtitan",
    "NeMo Automodel": "verl's group automodel",
    "transformers": "transformers' TrainingArguments",
}


def value_of(row: ForeignKey) -> str:
    """Say what happens to a key's value."""
    if row.by_hand:
        neutral = " or ".join(f"`{value}`" for value in row.neutral)
        return f"by hand, unless {neutral}" if neutral else "by hand"
    if row.renames:
        return "stays"
    if row.absolute_rate:
        return "divided by `lr`"
    return "converted"


def ours(text: str) -> str:
    """Mark the keys in an advice as code."""
    words = text.split(" ")
    return " ".join(
        f"`{word.rstrip(',:')}`{word[len(word.rstrip(',:')) :]}"
        if "_" in word or word.rstrip(",:") in {"optimizer", "betas", "eps", "lr"}
        else word
        for word in words
    )


def key_rows(owner: str) -> list[list[str]]:
    """Return the rows of one library: its key, ours, and what the value does."""
    return [
        [f"`{row.key}`", ours(row.instead), value_of(row)]
        for row in FOREIGN_ROWS
        if row.owner == owner and row.instead
    ]


def without_equal(owner: str) -> list[str]:
    """Return the keys of one library that are refused unless they change nothing."""
    return [row.key for row in FOREIGN_ROWS if row.owner == owner and not row.instead]


def class_rows() -> list[list[str]]:
    """Return the Trainer's names of optimizers with module and class."""
    return [
        [f"`{name}`", f"`{impl}`", f"`{cls}`"]
        for name, (impl, cls) in TRAINER_CLASSES.items()
    ]


def schedule_rows() -> list[list[str]]:
    """Return the names of schedules with ours."""
    rows = [("transformers", "lr_scheduler_type", TRAINER_SCHEDULES)]
    rows += [("Megatron", "lr_decay_style", {**MEGATRON_STYLES, "WSD": "wsd"})]
    named = [
        [owner, f"`{key}: {theirs}`", f"`lr_scheduler_type: {name}`"]
        for owner, key, names in rows
        for theirs, name in names.items()
        if (key, theirs) != ("lr_scheduler_type", name)
    ]
    decays = [
        ["Megatron", f"`lr_wsd_decay_style: {theirs}`", f"`lr_decay_style: {name}`"]
        for theirs, name in MEGATRON_DECAYS.items()
    ]
    return named + decays


def table(head: list[str], rows: list[list[str]]) -> str:
    """Write a table as the README writes them."""
    lines = [f"| {' | '.join(line)} |" for line in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def page() -> str:
    """Return all tables as the README has them."""
    parts = []
    for owner, heading in HEADINGS.items():
        parts.append(f"### {heading}\n")
        parts.append(table(["theirs", "ours", "value"], key_rows(owner)) + "\n")
        if without_equal(owner):
            names = ", ".join(f"`{name}`" for name in without_equal(owner))
            parts.append(f"No equal, left out where they change nothing: {names}.\n")
    parts.append("### Optimizers of the Trainer\n")
    parts.append(
        table(["`optim`", "`optimizer_impl`", "`optimizer`"], class_rows()) + "\n"
    )
    parts.append("### Schedules under other names\n")
    parts.append(table(["library", "theirs", "ours"], schedule_rows()) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page())  # noqa: T201 - what the script is for
