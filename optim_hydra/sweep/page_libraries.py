"""Pack what the page needs into the file: libraries and data, compressed, as text."""

from __future__ import annotations

import base64
import functools
import gzip

from itables.utils import read_package_file
from plotly.offline import get_plotlyjs

__all__ = ["block", "libraries"]


def block(name: str, content: bytes | str) -> str:
    """Return an element that carries some content; the page's script unpacks it.

    Base64 text can't end the element, whatever the content is.
    """
    data = content.encode() if isinstance(content, str) else content
    text = base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()
    return f'<script type="application/gzip" id="{name}">{text}</script>\n'


@functools.cache
def libraries() -> str:
    """Return the blocks of plotly.js, and of DataTables with its styles."""
    return (
        block("plotly", get_plotlyjs())
        + block("tables", read_package_file("html/dt_bundle.js"))
        + block("tables-style", read_package_file("html/dt_bundle.css"))
    )
