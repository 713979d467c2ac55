"""Input files that are no telemetry: which kind a file is, and its lines as JSON objects.

Kinds: ``otlp``; ``records``, one node record of ai4j a line (:class:`JsonlIoCaptureSink` writes the same); ``events``, one
event of a session a line, as ToyAgent writes them, plain or sealed to a chain.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from otel_agentrec.capture.otlp import MAX_LINE, OtlpFile
from otel_agentrec.errors import UsageError
from otel_agentrec.journal.events import FORMAT
from otel_agentrec.journal.jsontext import parse

__all__ = ["KINDS", "FileKind", "Line", "kind_of", "lines"]

FileKind = Literal["otlp", "records", "events"]
KINDS: tuple[FileKind, ...] = ("otlp", "records", "events")

_LOOK = 1 << 20
"""So many bytes of a file are looked at for a first line that tells what it is."""
_LINK = {"event", "hash", "prevHash"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank; ``place`` counts from 1. ``value`` is None when it is no JSON object: ``fault`` says why."""

    place: int
    raw: bytes
    value: dict[str, Any] | None
    fault: str = ""


def kind_of(file: OtlpFile) -> FileKind:
    """What the first line that can be known says.

    Raises:
        UsageError: it is a stream of a recording.
    """
    if file.format != "json":
        return "otlp"
    read = 0
    for line in lines(file, limit=_LOOK):
        read += len(line.raw)
        kind = _kind(line.value) if line.value is not None else None
        if kind == "stream":
            raise UsageError(
                f"{file.path} is a stream of a recording", "it need not be ingested: read it with otel-agentrec show"
            )
        if kind is not None:
            return kind
        if read > _LOOK:
            break
    return "otlp"


def _kind(value: dict[str, Any]) -> FileKind | Literal["stream"] | None:
    if any(key.startswith(("resource", "scope")) for key in value):
        return "otlp"
    if isinstance(value.get("nodeType"), str) and ("nodeId" in value or "recordId" in value):
        return "records"
    event = value.get("event") if value.keys() >= _LINK else value
    if isinstance(event, dict) and isinstance(event.get("type"), str) and {"seq", "payload"} & event.keys():
        return "stream" if event.get("v") == FORMAT else "events"
    return None


def lines(file: OtlpFile, progress: Callable[[int], None] | None = None, *, limit: int = MAX_LINE) -> Iterator[Line]:
    """The lines of a file. Damage costs the line that it stands in.

    Args:
        progress: called with the number of bytes of the file that were read since the last call.
        limit: bytes of one line; a longer one is a fault.
    """
    for place, (raw, fault) in enumerate(file.raw_lines(progress, limit), 1):
        line = raw.removeprefix(codecs.BOM_UTF8).strip() if place == 1 else raw.strip()
        if fault:
            yield Line(place, b"", None, fault)
        elif line:
            yield _line(place, line)


def _line(place: int, raw: bytes) -> Line:
    try:
        value = parse(raw.decode("utf-8"))
    except UnicodeDecodeError as e:
        return Line(place, raw, None, f"not UTF-8: byte 0x{raw[e.start]:02x} at {e.start + 1}")
    except json.JSONDecodeError as e:
        return Line(place, raw, None, f"not JSON: {e.msg} at column {e.colno}")
    except (ValueError, RecursionError):
        return Line(place, raw, None, "not JSON")
    return Line(place, raw, value) if isinstance(value, dict) else Line(place, raw, None, "no JSON object")
