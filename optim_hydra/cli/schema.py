"""Own `optim-hydra schema`: the JSON Schema of the files in `conf/optim`."""

from __future__ import annotations

import json

from optim_hydra.json_schema import node_schema

__all__ = ["schema_text"]


def schema_text() -> str:
    """Return the schema as a JSON file."""
    return json.dumps(node_schema(), indent=2) + "\n"
