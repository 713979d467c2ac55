"""What stands in a recording, for tests of the live edge: events of all streams, with content put back in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def streams(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Stream name -> its events, in the order in which the streams were opened."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(path.glob("*.jsonl")):
        if file.name != "index.jsonl" and not file.name.endswith(".content.jsonl"):
            lines = file.read_text().split("\n")[:-1]  # what follows the last line break is still being written
            if lines:
                found[file.stem] = [json.loads(line)["event"] for line in lines]
    return dict(sorted(found.items(), key=lambda item: int(item[1][0]["mono"])))


def events(path: Path, *types: str) -> list[dict[str, Any]]:
    """The events of all streams, of these types if any are given."""
    return [e for found in streams(path).values() for e in found if not types or e["type"] in types]


def types(path: Path) -> list[str]:
    """The types of a recording's events in order, without what every stream has."""
    always = ("STREAM_OPENED", "PROVIDER_SEEN", "STREAM_SEALED")
    return [e["type"] for e in events(path) if e["type"] not in always]


def contents(path: Path) -> str:
    """All content of a recording as one text."""
    return "".join(file.read_text() for file in sorted(path.glob("*.content.jsonl")))
