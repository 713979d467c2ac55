"""JSON Schemas (draft 2020-12) of what this version writes and prints, for tools in any language.

``event`` is the event ``E`` of a line, ``cell`` a line of a content file, ``record`` a line of ``nodes --json``. They are
made from the dataclasses that the code itself uses; ``python -m otel_agentrec.schemas`` writes them anew.

They say exactly what this version writes: a name that is not in them is an error there. A reader must take more than that:
types and keys that it does not know are to be passed over.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = ["FORMAT_DIRECTORY", "NAMES", "load"]

NAMES = ("event", "cell", "record")
FORMAT_DIRECTORY = "agentrec-1"
"""Where the schemas of the current format stand, beside this file; each format has its own."""


def load(name: str) -> dict[str, Any]:
    """The schema of that name.

    Raises:
        KeyError: there is none.
    """
    if name not in NAMES:
        raise KeyError(f"there is no schema {name!r}; there are {', '.join(NAMES)}")
    text = (files(__name__) / FORMAT_DIRECTORY / f"{name}.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
