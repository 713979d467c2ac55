"""Add events to a recording that others write or have written: in a new stream of their own, for nothing is ever edited."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from otel_agentrec._version import __version__
from otel_agentrec.errors import AgentRecError
from otel_agentrec.journal.draft import NewEvent, SealedAt, make_draft
from otel_agentrec.journal.gate import Gate
from otel_agentrec.journal.index import Index
from otel_agentrec.journal.writer import StreamWriter
from otel_agentrec.redaction import Redactor

__all__ = ["append_events"]


def append_events(
    directory: str | os.PathLike[str],
    events: Sequence[NewEvent],
    *,
    origin: str,
    by: str,
    redactor: Redactor | None = None,
) -> list[SealedAt]:
    """Append events as a new stream, sealed at once. Returns where each went.

    Args:
        directory: a recording that is there.
        origin: name of the writing host.
        by: the command or tool that writes, for STREAM_OPENED.
        redactor: what the events pass before they are written; default: the default rules.

    Raises:
        AgentRecError: the directory can't be written. What was written by then is a valid, unsealed stream.
    """
    place, gate = Path(directory), Gate(redactor)
    try:
        index = Index(place, origin)
        opened = {"sdk": {"name": f"otel-agentrec {by}", "version": __version__}}
        writer = StreamWriter(place, origin=origin, index=index, opened=opened)
        try:
            done = [writer.append(make_draft(e.type, e.payload, e.where, writer.cache, gate)) for e in events]
            writer.seal(sync=True)
        finally:
            writer.close()
    except OSError as e:
        why = e.strerror or str(e)
        raise AgentRecError(f"{place} can't be written: {why}", "make room there, or ask who may write to it") from e
    return done
