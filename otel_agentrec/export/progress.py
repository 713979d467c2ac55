"""How far an export to one address has come, so that it goes on after an interruption."""

from __future__ import annotations

import json
from hashlib import sha256

from otel_agentrec.journal.reader import Recording
from otel_agentrec.journal.wholefile import replace_file

__all__ = ["Progress"]


class Progress:
    """Stream -> seq of the last span (or event, where ``events``) that ``url`` has. Kept below ``projections/``: it can be
    deleted at any time."""

    def __init__(self, recording: Recording, url: str, *, events: bool = False) -> None:
        key = f"{url} events" if events else url
        digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._path = recording.directory / "projections" / f"export-{digest}.json"

    def load(self) -> dict[str, int]:
        """Empty when there is none, or what is there is no use."""
        try:
            held = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        held = held.get("upto") if isinstance(held, dict) else None
        return {k: v for k, v in held.items() if type(v) is int} if isinstance(held, dict) else {}

    def save(self, upto: dict[str, int]) -> None:
        """Raises OSError: the recording can't be written."""
        replace_file(self._path, json.dumps({"upto": upto}).encode())
