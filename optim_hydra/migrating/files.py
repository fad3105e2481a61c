"""Read text files byte for byte, and replace them all at once."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TextFile", "UnreadableFileError", "read_text", "replace_text"]

_BOM = "\ufeff"


class UnreadableFileError(Exception):
    """A file that is left alone; the text says why."""


@dataclass(frozen=True)
class TextFile:
    """A text with its line breaks as they are, without its byte order mark."""

    path: Path
    text: str
    has_bom: bool


def read_text(path: Path) -> TextFile:
    """Read a file of UTF-8.

    Raises:
        UnreadableFileError: It can't be read, or is of another encoding.

    """
    if not path.is_file():
        msg = "it is no file"
        raise UnreadableFileError(msg)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"it is not UTF-8 (byte {error.start})"
        raise UnreadableFileError(msg) from error
    except OSError as error:
        msg = f"it can't be read: {error.strerror}"
        raise UnreadableFileError(msg) from error
    if "\0" in text:
        msg = "it is no text"
        raise UnreadableFileError(msg)
    return TextFile(path, text.removeprefix(_BOM), text.startswith(_BOM))


def replace_text(file: TextFile, text: str) -> None:
    """Put a new text into a file: whole or not at all, with its mode; links stay.

    Raises:
        UnreadableFileError: It can't be written; the file is as it was.

    """
    path = file.path.resolve()
    data = f"{_BOM if file.has_bom else ''}{text}".encode()
    aside = ""
    try:
        mode = path.stat().st_mode
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as written:
            written.write(data)
        Path(aside).chmod(mode)
        Path(aside).replace(path)
    except OSError as error:
        if aside:
            Path(aside).unlink(missing_ok=True)
        msg = f"it can't be written: {error.strerror}"
        raise UnreadableFileError(msg) from error
