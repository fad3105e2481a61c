"""Know the flags of other libraries' programs, and which keys they set."""

from __future__ import annotations

from functools import cache

from optim_hydra.foreign_keys import FOREIGN_ROWS

__all__ = [
    "BETAS",
    "LENGTHS",
    "common_keys",
    "flag_key",
    "flag_names",
    "is_switch",
    "setting_keys",
]

_OWNERS = {
    "transformers": "transformers",
    "megatron": "Megatron",
    "torchtitan": "torchtitan",
}
# Flags with our own names.
_OURS = {
    "transformers": ("weight_decay", "lr_scheduler_type"),
    "megatron": ("lr", "weight_decay", "clip_grad", "lr_decay_style", "optimizer"),
    "torchtitan": ("lr", "weight_decay", "eps", "implementation"),
}
_TITAN_SECTIONS = {
    **dict.fromkeys(
        ("warmup_steps", "total_steps", "decay_ratio", "decay_type", "min_lr_factor"),
        "lr_scheduler",
    ),
    "max_norm": "training",
}

LENGTHS = {
    "transformers": ("--max_steps", "max_steps"),
    "megatron": ("--train_iters", "lr_decay_iters"),
    "torchtitan": ("--training.steps", "total_steps"),
}
"""By source: the flag of the trainer's own length, which the schedule has, too, and
the key that says so to the schedule alone."""

BETAS = {
    "transformers": ("adam_beta1", "adam_beta2", 0.9, 0.999),
    "megatron": ("adam_beta1", "adam_beta2", 0.9, 0.999),
    "torchtitan": ("beta1", "beta2", 0.9, 0.95),
}
"""By source: the two keys, and what a program has where it gets no such flag."""


@cache
def setting_keys(source: str) -> frozenset[str]:
    """Return the keys that this library alone would have beside each other."""
    owner = "VeOmni" if source == "veomni" else _OWNERS.get(source)
    return frozenset(row.key for row in FOREIGN_ROWS if row.owner == owner)


def common_keys(source: str) -> tuple[str, ...]:
    """Return a library's keys that are ours, too, or anybody's."""
    return _OURS.get(source, ("lr", "weight_decay", "optimizer", "lr_decay_style"))


@cache
def flag_names(source: str) -> dict[str, str]:
    """Return a source's flags, each with the key that it sets; none for others."""
    if source not in _OWNERS:
        return {}
    rows = [row.key for row in FOREIGN_ROWS if row.owner == _OWNERS[source]]
    keys = [*rows, *_OURS[source]]
    if source == "torchtitan":
        return {f"--{_TITAN_SECTIONS.get(k, 'optimizer')}.{k}": k for k in keys}
    return {f"--{key}": key for key in keys if key != "max_steps"}


def flag_key(text: str, names: dict[str, str]) -> str:
    """Return the key that a word sets as a flag, or nothing; dashes are underscores."""
    name = text.partition("=")[0]
    plain = name[:2] + name[2:].replace("-", "_")
    return names.get(name) or names.get(plain) or ""


def other_source(text: str, source: str) -> str:
    """Return the other library whose program alone has a flag, or nothing."""
    if text[:2] != "--" or flag_key(text, flag_names(source)):
        return ""
    others = [name for name in _OWNERS if flag_key(text, flag_names(name))]
    return others[0] if len(others) == 1 else ""


def is_switch(key: str) -> bool:
    """Whether a flag may stand without a value."""
    return any(
        row.key == key and (False in row.neutral or row.instead.startswith("on_resume"))
        for row in FOREIGN_ROWS
    )
