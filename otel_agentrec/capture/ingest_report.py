"""What an ingest tells when it is done."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from otel_agentrec.records import camel

__all__ = ["MAX_TOLD", "IngestReport", "Quarantined"]

MAX_TOLD = 100
"""So many quarantined lines are named one by one; all are counted."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something that could not be read: ``line`` counts lines (or protobuf messages) from 1."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(slots=True)
class IngestReport:
    """What ``ingest`` did. ``foreign`` spans are no steps of an agent: read for their parents and retries, not recorded."""

    stream: str = ""
    """The stream that telemetry and node records went to; empty when there were none."""
    files: int = 0
    spans: int = 0
    logs: int = 0
    models: int = 0
    tools: int = 0
    agents: int = 0
    steps: int = 0
    foreign: int = 0
    logs_recorded: int = 0
    """Log records that no span took, recorded as they are."""
    records: int = 0
    """Node records of files of records; they count among ``models`` and ``tools`` too."""
    sessions: list[str] = field(default_factory=list)
    """Ids of the sessions that event logs went to."""
    session_events: int = 0
    """Events added to them; what was there already is not added again."""
    chains: list[dict[str, Any]] = field(default_factory=list)
    """Of event logs that are sealed to a chain: ``{file, links, valid}``, and ``head``, or ``firstBrokenLine`` and ``why``."""
    quarantined_count: int = 0
    quarantined: list[Quarantined] = field(default_factory=list)
    """The first of them."""
    notes: list[str] = field(default_factory=list)

    def quarantine(self, path: Path, line: int, reasons: Iterable[str]) -> None:
        """Count what could not be read in a line, and name it while there is room."""
        for reason in reasons:
            self.quarantined_count += 1
            if len(self.quarantined) < MAX_TOLD:
                self.quarantined.append(Quarantined(str(path), line, reason))

    def to_json(self) -> dict[str, Any]:
        """camelCase keys, ready for JSON."""
        return {camel(key): value for key, value in dataclasses.asdict(self).items()}
