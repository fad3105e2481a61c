"""Find the place of a key in a YAML file, for messages about it."""

from __future__ import annotations

from pathlib import Path

import yaml

__all__ = ["place_of_key"]


def place_of_key(file: str, key: str) -> tuple[int, int]:
    """Return the line and column of a key, from 1; (0, 0) where it can't be found.

    Args:
        file: Its path, or the name of what is no file.
        key: Its full key, of which the file may have the end alone: a file of the
            group `optim` does not know where it is mounted.

    """
    try:
        root = yaml.compose(Path(file).read_text(encoding="utf-8"), yaml.SafeLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return 0, 0
    names = key.replace("[", ".[").split(".")
    for begin in range(len(names)):
        found = _find(root, names[begin:])
        if found is not None:
            return found.start_mark.line + 1, found.start_mark.column + 1
    return 0, 0


def _find(node: yaml.Node | None, names: list[str]) -> yaml.Node | None:
    """Return the node of the last key of a path, also one that is merged."""
    name, *rest = names
    if isinstance(node, yaml.SequenceNode):
        index = name[1:-1] if name[:1] == "[" else ""
        is_there = index.isdecimal() and int(index) < len(node.value) and bool(rest)
        return _find(node.value[int(index)], rest) if is_there else None
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if key.value == name:
            return _find(value, rest) if rest else key
    for key, value in node.value:
        bases = value.value if isinstance(value, yaml.SequenceNode) else [value]
        found = [_find(base, names) for base in bases if key.value == "<<"]
        if any(found):
            return next(each for each in found if each is not None)
    return None
